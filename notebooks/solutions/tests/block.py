OK_FORMAT = True

test = {
    "name": "block",
    "points": 1,
    "suites": [
        {
            "cases": [{"code": '>>> from speclab import teach\n>>> card = teach.check_block(block_test)\n>>> assert card.is_right, card', "hidden": False, "locked": False}],
            "scored": True,
            "setup": "",
            "teardown": "",
            "type": "doctest",
        }
    ],
}
