from plimsoll.local.supervision.restart_backoff import RestartBackoff


def test_delays_double_up_to_half_a_minute():
    restarts, delays = RestartBackoff(), []
    for _ in range(7):
        restarts, at = restarts.on_exit(100.0)
        delays.append(at - 100.0)
    assert delays == [1, 2, 4, 8, 16, 30, 30]
    assert restarts.count == 7


def test_a_healthy_minute_starts_over():
    restarts = RestartBackoff()
    for _ in range(4):
        restarts, _ = restarts.on_exit(0.0)
    restarts = restarts.on_ready(10.0).on_ready(60.0)  # ready since 10
    short, at = restarts.on_exit(69.9)
    assert at - 69.9 == 16
    long, at = restarts.on_exit(70.0)
    assert at - 70.0 == 1
    assert (short.count, long.count) == (5, 5)


def test_a_run_that_was_never_ready_is_not_healthy_however_long():
    restarts, _ = RestartBackoff().on_exit(0.0)
    _, at = restarts.on_exit(1000.0)
    assert at == 1002.0
