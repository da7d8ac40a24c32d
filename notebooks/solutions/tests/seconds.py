OK_FORMAT = True

test = {
    "name": "seconds",
    "points": 1,
    "suites": [
        {
            "cases": [{"code": '>>> from speclab import teach\n>>> card = teach.check_seconds(seconds)\n>>> assert card.is_right, card', "hidden": False, "locked": False}],
            "scored": True,
            "setup": "",
            "teardown": "",
            "type": "doctest",
        }
    ],
}
