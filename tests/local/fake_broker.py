"""Stands in for a broker process: answers on its control socket and reports loads, as its mode file says.

Run by the supervisor with `--config FILE --parent-pid PID`. A file FILE.mode beside the configuration chooses what it
does: `crash` (exit 3 at once), `silent` (never answer), `stubborn` (ignore SIGTERM). Its end is noted in FILE.left,
and the list of edges that it receives in FILE.members. Its load reports have what FILE.report says as well. It has no
subscribers.
"""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import zmq

from plimsoll.core.protocol import messages, wire


def main() -> int:
    file = Path(sys.argv[sys.argv.index("--config") + 1])
    config = json.loads(file.read_text())
    mode_file = file.with_suffix(".mode")
    mode = mode_file.read_text() if mode_file.exists() else ""
    if mode == "crash":
        print("cannot go on: told to crash", flush=True)
        return 3
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1) if mode != "stubborn" else None)
    context = zmq.Context()
    control = context.socket(zmq.ROUTER)
    control.setsockopt(zmq.LINGER, 0)
    if not config["security"]["plain"]:
        control.setsockopt(zmq.CURVE_SERVER, 1)
        control.setsockopt_string(zmq.CURVE_SECRETKEY, Path(config["security"]["secret_key_file"]).read_text().strip())
    control.bind(config["control"])
    mediators: set[bytes] = set()
    seq, next_report = 0, 0.0
    while not stopped:
        if control.poll(20) and mode != "silent":
            peer, data = control.recv_multipart()
            frame = wire.decode_frame(data)
            assert isinstance(frame, wire.Control)
            for raw in frame.records:
                record = messages.decode(messages.control, raw)
                if isinstance(record, messages.Identify):
                    mediators.add(peer)
                elif isinstance(record, messages.ClusterMembers):
                    with contextlib.suppress(OSError):  # the disk of a test is full; a real broker writes no such file
                        file.with_suffix(".members").write_text(json.dumps([record.edges, record.cordoned]))
                elif isinstance(record, messages.StatusQuery):
                    status = {"ready": True, "epoch": 1, "edges": config["edges"]}
                    control.send_multipart([peer, wire.control_frame(messages.StatusReply(record.id, status))])
                elif isinstance(record, messages.ListSubscribers):  # no subscribers
                    served = messages.SubscriberPage(record.id, record.edge, 1, [], False)
                    control.send_multipart([peer, wire.control_frame(served)])
        if time.monotonic() > next_report:
            seq, next_report = seq + 1, time.monotonic() + 0.1
            more = json.loads(reports.read_text()) if (reports := file.with_suffix(".report")).exists() else {}
            for peer in mediators:
                for name in [config["name"], *config["edges"]]:
                    report = {"broker": name, "epoch": 1, "seq": seq, "state": "OK", "input_utilization": 0.25}
                    control.send_multipart(
                        [peer, wire.control_frame(messages.LoadUpdate({**report, **more, "subscribers": 7}))]
                    )
    file.with_suffix(".left").write_text(str(time.monotonic()))
    context.destroy()
    return 0


if __name__ == "__main__":
    assert int(sys.argv[sys.argv.index("--parent-pid") + 1]) == os.getppid()
    sys.exit(main())
