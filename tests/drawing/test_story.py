"""The player shows the text so far at each commit, with a sentence."""

from __future__ import annotations

import json
import re

from helpers.events import event_of
from helpers.toy_runs import toy_run, toy_runs

from speclib import compare, simulate, timeline
from speclib.drawing.timeline.run import timeline_run
from speclib.drawing.timeline.sayings import story_of
from speclib.trace.events import Trace


def test_every_commit_is_a_moment_and_the_last_has_the_whole_text():
    for item in compare(tokens=20, alpha=0.7):
        moments = story_of(timeline_run(item))
        ends = [event.end for event in item.trace.commits]
        assert [moment.seconds for moment in moments] == ends
        assert moments[-1].text.replace("\u00a0", " ").strip() == item.text
        for before, after in zip(moments, moments[1:], strict=False):
            assert after.text.startswith(before.text)


def test_a_sentence_states_how_many_drafts_passed_and_what_was_corrected():
    """The expected counts come from the trace, where each round's drafts are marked."""
    item = simulate("speculative", gamma=3, alpha=0.6, tokens=24)
    moments = story_of(timeline_run(item))
    blocks = [event for event in item.trace.operations if event.is_drafting]
    seen = set()
    for block, moment in zip(blocks[:-1], moments[:-1], strict=True):
        accepted = block.outcome.count("accepted")
        plural = "" if accepted == 1 else "s"
        passed = f"{accepted} draft{plural} accepted"
        assert (passed in moment.sentence) == (accepted > 0)
        verb = "corrected to" if "rejected" in block.outcome else "target model wrote"
        assert verb in moment.sentence
        seen.add(verb)
    assert len(seen) == 2


def test_plain_decodings_sentences_mention_no_drafts():
    (first, *_) = story_of(timeline_run(simulate("autoregressive", tokens=4)))
    assert first.sentence == "Plain decoding, round 1: the target model wrote “A”"


def test_a_round_that_commits_nothing_is_described():
    """DuoDecoding and DSI have rounds in which nothing is certain yet."""
    events = [
        event_of(0, 1, "target", "score", 0, 0, (1,), (), "virtual"),
        event_of(1, 0, "controller", "commit", 1, 0, (), (), "virtual"),
    ]
    (moment,) = story_of(timeline_run(Trace(events, {"method": "dsi"})))
    assert moment.sentence == "DSI, round 1: nothing is certain yet"
    assert moment.text == ""


def test_the_players_times_are_shares_of_the_pictures_axis():
    runs = toy_runs()
    stories = timeline(*runs).story["runs"]
    longest = max(item.trace.makespan for item in runs)
    for item, run in zip(runs, stories, strict=True):
        ends = [event.end / longest for event in item.trace.commits]
        assert [share for share, _, _ in run["moments"]] == ends
    half = timeline(*runs, until=longest / 2).story["runs"]
    assert half[0]["moments"][0][0] == 2 * stories[0]["moments"][0][0]


def test_the_player_is_updated_when_other_results_are_shown():
    view = timeline(toy_run("autoregressive"))
    before = view.story
    view.update(toy_run("pearl", gamma=3))
    assert view.story != before


def test_a_saved_page_has_the_player_and_no_text_ends_its_script(tmp_path):
    result = simulate("pearl", text="</script> <b> & so on", tokens=12)
    page = timeline(result).save(tmp_path / "a.html").read_text()
    assert page.count("</script>") == 1
    (story,) = re.findall(r"show\(svg, (.*)\);", page)
    assert json.loads(story)["runs"][0]["label"].startswith("PEARL")
