"""Serves the keyframe protocol to one client: prints its port, applies the changes from its standard input,
closes the connection, and prints its state.

    python3 server.py BASE_TIME

Changes are lines: `add PROPERTY TIME VALUE`, `remove PROPERTY TIME`, `move PROPERTY TIME OFFSET`, and `raw`
with 28 hexadecimal digits, which is sent as it is and applied to nothing.
"""

import json
import socket
import sys

from protocol import ADD, META, MOVE, OPEN, REMOVE, SYNC, Store, field, pack, packets, prepare, write


def change(words):
    numbers = [int(word) for word in words[1:]]
    base = {"type": OPEN, "property": numbers[0], "time_increment": numbers[1]}
    if words[0] == "add":
        return pack(**base, method=ADD, value=numbers[2])
    if words[0] == "remove":
        return pack(**base, method=REMOVE)
    assert words[0] == "move"
    offset = numbers[2]
    return pack(**base, method=MOVE, time_offset=abs(offset), time_offset_negation=int(offset < 0))


def main():
    store = Store()
    store.base_time = int(sys.argv[1])
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(60)
    print(listener.getsockname()[1], flush=True)
    connection = prepare(listener.accept()[0])
    request = next(packets(connection))
    assert (field(request, "type"), field(request, "method")) == (SYNC, META)
    assert field(request, "base_time") == 0
    write(connection, pack(type=SYNC, method=META, base_time=store.base_time))
    for line in sys.stdin:
        words = line.split()
        if words[0] == "raw":
            write(connection, bytes.fromhex(words[1]))
            continue
        packet = change(words)
        write(connection, packet)
        store.apply(packet)
    connection.close()
    print(json.dumps(store.report()))


main()
