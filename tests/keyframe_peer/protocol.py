"""The keyframe protocol, written from its document alone: sections 3.1 to 3.4, tables 1 to 4, appendix 1.

Ramon Brand, "Defining a Keyframe Based Protocol for Optimising Network Updates of Large Sets of
Entities", 2019. Nothing here is taken from the Rust code, so that the two can be compared.
"""

import socket

PACKET_SIZE = 14

SYNC, OPEN = 0, 1
ADD, REMOVE, MOVE, META = 0, 1, 2, 3

# First bit of a field, and its number of bits; bit 0 is the first on the wire.
LAYOUT = {
    "type": (0, 2),
    "method": (2, 4),
    "base_time": (8, 96),
    "time_increment": (6, 26),
    "property": (32, 24),
    "value": (56, 32),
    "time_offset": (56, 26),
    "time_offset_negation": (88, 1),
}


def pack(**fields):
    packet = bytearray(PACKET_SIZE)
    for name, number in fields.items():
        start, count = LAYOUT[name]
        assert 0 <= number < 1 << count, f"{name} of {number} does not fit"
        for bit in range(count):
            if number >> (count - 1 - bit) & 1:
                place = start + bit
                packet[place // 8] |= 0x80 >> place % 8
    return bytes(packet)


def field(packet, name):
    start, count = LAYOUT[name]
    number = 0
    for place in range(start, start + count):
        number = number << 1 | packet[place // 8] >> (7 - place % 8) & 1
    return number


class Store:
    """Properties, each a list of [time increment, value], in order of time."""

    def __init__(self):
        self.base_time = 0
        self.properties = {}

    def apply(self, packet):
        keyframes = self.properties.setdefault(field(packet, "property"), [])
        time = field(packet, "time_increment")
        method = field(packet, "method")
        if method == ADD:
            keyframes.append([time, field(packet, "value")])
        elif method == REMOVE:
            keyframes[:] = [keyframe for keyframe in keyframes if keyframe[0] != time]
        elif method == MOVE:
            offset = field(packet, "time_offset")
            if field(packet, "time_offset_negation"):
                offset = -offset
            next(keyframe for keyframe in keyframes if keyframe[0] == time)[0] += offset
        keyframes.sort(key=lambda keyframe: keyframe[0])

    def at(self, number, time):
        """Section 3.4: the value before, after and between keyframes, or null."""
        keyframes = self.properties.get(number)
        if not keyframes:
            return None
        if time < keyframes[0][0]:
            return keyframes[0][1]
        if time >= keyframes[-1][0]:
            return keyframes[-1][1]
        for (start, first), (end, last) in zip(keyframes, keyframes[1:]):
            if start <= time < end:
                share = (time - start) / (end - start)
                return (1 - share) * first + share * last
        raise AssertionError("times ascend")

    def report(self):
        """The whole state for comparison, with look-ups at, between and around the keyframes."""
        properties = []
        for number, keyframes in sorted(self.properties.items()):
            times = sorted({time + after for time, _ in keyframes for after in (-7, 0, 3, 1000)})
            looked_up = [[time, self.at(number, time)] for time in times]
            properties.append({"id": number, "keyframes": keyframes, "look_ups": looked_up})
        return {"base_time": self.base_time, "properties": properties}


def packets(connection):
    """Yields packets until the other end closes; reads may split the stream anywhere."""
    rest = b""
    while True:
        read = connection.recv(4096)
        if not read:
            assert not rest, f"{len(rest)} bytes of a packet at the end"
            return
        rest += read
        while len(rest) >= PACKET_SIZE:
            yield rest[:PACKET_SIZE]
            rest = rest[PACKET_SIZE:]


def write(connection, packet):
    """Sends a packet in one write."""
    assert connection.send(packet) == PACKET_SIZE


def prepare(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(60)
    return connection
