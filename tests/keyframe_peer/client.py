"""Follows a server of the keyframe protocol until it closes the connection, and prints its state.

    python3 client.py PORT
"""

import json
import socket
import sys

from protocol import META, OPEN, SYNC, Store, field, pack, packets, prepare, write


def main():
    store = Store()
    connection = prepare(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60))
    write(connection, pack(type=SYNC, method=META, base_time=0))
    for packet in packets(connection):
        kind = field(packet, "type")
        if kind == SYNC:
            assert field(packet, "method") == META
            store.base_time = field(packet, "base_time")
        elif kind == OPEN:
            store.apply(packet)
    print(json.dumps(store.report()))


main()
