"""A terminal is redrawn; elsewhere there are plain lines, now and then."""

from plimsoll.demo.live_display import LiveDisplay, RunTotals, broker_table

REPORT = {
    "broker": "b1", "subscribers": 1177, "input_rate": 69.4, "output_rate": 3911.2, "input_utilization": 0.334,
    "output_utilization": 0.24, "match_delay_seconds": 0.00481, "input_queue_messages": 2, "output_queue_messages": 3,
    "state": "OK",
}  # fmt: skip
TOTALS = RunTotals(seconds_left=21.0, published=3392, delivered=184359, subscribers=2000, wanted_subscribers=2000)


def show(live, times):
    for now in times:
        live.show([REPORT], TOTALS, now)


def test_a_row_has_what_the_headings_say():
    heading, row = broker_table([REPORT])
    assert " ".join(heading.split()) == "broker subs in/s out/s input output matching queue state"
    assert row.split() == ["b1", "1,177", "69", "3,911", "33%", "24%", "4.81", "ms", "5", "OK"]
    assert len(heading) == len(row) == 79


def test_a_broker_that_says_little_is_shown_all_the_same():
    assert broker_table([{"broker": "b1"}])[1].split() == ["b1", "0", "0", "0", "0%", "0%", "0.00", "ms", "0", "N/A"]


def test_totals_say_what_is_left_or_what_is_going_on():
    assert TOTALS.lines() == [
        "21 s left   subscribers 2,000 of 2,000", "published 3,392   delivered 184,359   gaps 0",
    ]  # fmt: skip
    assert RunTotals(0.0, phase="connecting").lines()[0].startswith("connecting   ")
    assert "delay p99 26 ms" in RunTotals(1.0, delay_seconds=0.0257).lines()[0]


def test_a_terminal_is_redrawn_each_time():
    said: list[str] = []
    live = LiveDisplay(said.append, terminal=True, interval_seconds=10)
    show(live, [0.0, 0.25])
    lines = said[0].count("\n")
    assert said[1] == f"\x1b[{lines}A\x1b[J"
    live.keep()
    live.say("done")
    assert said[-1] == "done\n"
    assert "\x1b" not in said[-2]


def test_plain_lines_come_once_per_interval_and_hold_no_escapes():
    said: list[str] = []
    show(LiveDisplay(said.append, terminal=False, interval_seconds=10), [0.0, 5.0, 10.0, 15.0, 20.5])
    assert len(said) == 2
    assert "\x1b" not in "".join(said)


def test_lines_are_cut_at_the_edge_of_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    said: list[str] = []
    show(LiveDisplay(said.append, terminal=True, interval_seconds=10), [0.0])
    assert max(len(line) for line in said[0].splitlines()) == 39
