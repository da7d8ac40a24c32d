OK_FORMAT = True

test = {
    "name": "ssd_round",
    "points": 1,
    "suites": [
        {
            "cases": [{"code": '>>> from speclab import teach\n>>> card = teach.check_ssd_round(mean_round)\n>>> assert card.is_right, card', "hidden": False, "locked": False}],
            "scored": True,
            "setup": "",
            "teardown": "",
            "type": "doctest",
        }
    ],
}
