OK_FORMAT = True

test = {
    "name": "batch_limit",
    "points": 1,
    "suites": [
        {
            "cases": [{"code": '>>> from speclab import teach\n>>> card = teach.check_batch_limit(batch_limit)\n>>> assert card.is_right, card', "hidden": False, "locked": False}],
            "scored": True,
            "setup": "",
            "teardown": "",
            "type": "doctest",
        }
    ],
}
