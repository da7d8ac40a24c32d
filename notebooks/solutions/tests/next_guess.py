OK_FORMAT = True

test = {
    "name": "next_guess",
    "points": 1,
    "suites": [
        {
            "cases": [{"code": '>>> from speclab import teach\n>>> card = teach.check_next_guess(next_guess)\n>>> assert card.is_right, card', "hidden": False, "locked": False}],
            "scored": True,
            "setup": "",
            "teardown": "",
            "type": "doctest",
        }
    ],
}
