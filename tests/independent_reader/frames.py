"""Parses frames and messages, written from WIRE.md alone."""


class Malformed(Exception):
    """Bytes that no honest end writes."""


def check(so, why):
    if not so:
        raise Malformed(why)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, length):
        check(length <= self.left(), "ends early")
        self.at += length
        return self.data[self.at - length : self.at]

    def rest(self):
        return self.take(self.left())

    def fixed(self, size):
        return int.from_bytes(self.take(size), "little")

    def number(self):
        value, shift = 0, 0
        while True:
            byte = self.fixed(1)
            value |= (byte & 127) << shift
            if byte < 128:
                check(byte or not shift, "not the shortest form")
                check(value < 1 << 64, "too large a number")
                return value
            shift += 7
            check(shift < 70, "too long a number")

    def counted(self, limit):
        length = self.number()
        check(length <= limit, "too long")
        return self.take(length)

    def end(self):
        check(not self.left(), "goes on behind its end")


# Frames


def read_frames(to, body):
    reader, frames = Reader(body), []
    while reader.left():
        frames.append(read_frame(to, reader))
    check(1 <= len(frames) <= 64, "number of frames")
    return frames


def read_frame(to, reader):
    first = reader.fixed(1)
    if first >= 128:
        return read_message(first, reader)
    if first >= 64:
        message = bytes([first]) + reader.rest()
        check(len(message) <= 32 << 10, "too long a message")
        return dict(frame="message", channel=2, reliable=False, bytes=message)
    if first in (1, 2):
        return read_received(first, reader)
    if first == 5:
        low, bits, delay = reader.fixed(1), reader.fixed(2), reader.fixed(1)
        arrival = reader.fixed(1)
        return dict(frame="recent", low=low, bits=bits, delay=delay, arrival=arrival)
    if first == 6:
        return dict(frame="marked", count=reader.number())
    if first == 3:
        return dict(frame="ask")
    if first == 4:
        blob, offset, length = reader.number(), reader.number(), reader.number()
        check(length, "nothing")
        return dict(frame="chunk", blob=blob, offset=offset, bytes=reader.take(length))
    if first == 16:
        zeros = reader.rest()
        check(not any(zeros), "not zeros")
        return dict(frame="padding", length=len(zeros))
    if first == 17:
        return dict(frame="ping", id=reader.fixed(1))
    if first == 18:
        return dict(frame="pong", id=reader.fixed(1), came=reader.number(), delay=reader.number())
    check(first == 19 and to == "server", "unknown frame")
    return dict(frame="input", inputs=read_inputs(reader))


def read_received(first, reader):
    newest, delay = reader.number(), reader.number()
    arrival, further = reader.fixed(1), reader.number()
    low = newest - further
    packets = [[low, newest]]
    if first == 2:
        gaps = reader.number()
        check(1 <= gaps <= 63, "number of gaps")
        for _ in range(gaps):
            high = low - (reader.number() + 1) - 1
            low = high - reader.number()
            packets.append([low, high])
    check(low >= 0, "below 0")
    return dict(frame="received", newest=newest, delay=delay, arrival=arrival, packets=packets)


def complete_recent(frame, base):
    """The report of a recent one, whose newest is not below `base`."""
    newest = base + (frame["low"] - base) % 256
    listed = [newest] + [newest - 1 - bit for bit in range(16) if frame["bits"] >> bit & 1]
    check(listed[-1] >= 0, "below 0")
    packets = [[number, number] for number in listed]
    times = dict(delay=frame["delay"], arrival=frame["arrival"])
    return dict(frame="received", recent=True, newest=newest, packets=packets, **times)


def read_message(first, reader):
    reliable, part, last = bool(first & 64), first & 32, first & 16
    frame = dict(frame="message", channel=first & 15, reliable=reliable)
    if reliable or part:
        frame["number"] = reader.number()
    if part:
        frame["offset"], frame["total"] = reader.number(), reader.number()
    frame["bytes"] = reader.rest() if last else reader.take(reader.number())
    if part:
        check(frame["bytes"], "an empty part")
        check(frame["offset"] + len(frame["bytes"]) <= frame["total"], "beyond the end")
    longest = (128 << 10) + 16 if reliable else 32 << 10
    check(frame.get("total", len(frame["bytes"])) <= longest, "too long a message")
    return frame


def read_inputs(reader):
    tick, groups, inputs = reader.number(), reader.fixed(1), []
    check(groups, "no groups")
    keys_down, x, y, fields = set(), 0, 0, b""
    for group in range(groups):
        flags = reader.fixed(1)
        check(flags < 128 and not (group == 0 and flags & 1), "flags")
        if group:
            step = reader.number() if flags & 1 else 1
            check(step, "no step")
            tick += step
        joined = reader.number() if flags & 2 else 0
        check(joined <= tick, "joined from below 0")
        changed = read_keys(reader) if flags & 4 else set()
        new = changed - keys_down
        keys_down = keys_down ^ changed
        pressed = (read_keys(reader) if flags & 8 else set()) ^ (new if group else set())
        if flags & 16:
            x, y = read_move(reader, x), read_move(reader, y)
        if flags & 32:
            length = reader.fixed(1)
            check(length <= 32, "too many fields")
            fields = reader.take(length)
        repeats = reader.number() if flags & 64 else 0
        check(len(inputs) + 1 + repeats <= 64, "too many inputs")
        for repeat in range(1 + repeats):
            some = pressed if repeat == 0 else set()
            start = tick - joined if repeat == 0 else tick + repeat
            one = dict(tick=tick + repeat, since=start, keys_down=sorted(keys_down), pressed=sorted(some))
            inputs.append(dict(one, pointer=[x, y], fields=fields.hex()))
        tick += repeats
        check(tick < 1 << 64, "too late a tick")
    return inputs


def read_keys(reader):
    count = reader.fixed(1)
    check(count <= 32, "keys")
    if count < 32:
        return set(reader.take(count))
    bits = reader.fixed(32)
    return {key for key in range(256) if bits >> key & 1}


def read_move(reader, old):
    move = reader.number()
    check(move < 1 << 32, "too far")
    new = old + (-(move + 1 >> 1) if move & 1 else move >> 1)
    return (new + (1 << 31)) % (1 << 32) - (1 << 31)


# Messages


def read_request(message):
    reader = Reader(message)
    number = reader.number()
    return {"answer" if number % 2 else "request": number // 2, "message": reader.rest().hex()}


def read_about_blob(message):
    reader = Reader(message)
    about = reader.fixed(1)
    check(about < 4, "about blobs")
    told = dict(about=("offer", "accept", "withdrawn", "refused")[about], blob=reader.number())
    if about == 0:
        told["size"] = reader.number()
        check(reader.left() <= 64, "too long a label")
        told["label"] = reader.rest().hex()
    reader.end()
    return told


def read_lobby(to, data):
    reader = Reader(data)
    kind = reader.fixed(1)
    names = ("info", "loaded") if to == "server" else ("info", "welcome", "reset", "roster")
    check(1 <= kind <= len(names), "unknown message")
    told = dict(kind=names[kind - 1])
    if told["kind"] == "loaded":
        told["resets"] = reader.number()
    elif told["kind"] == "welcome":
        told["player"] = reader.fixed(2)
    elif told["kind"] == "roster":
        told["left"] = read_list(reader, lambda: (reader.fixed(2),))
        told["changed"] = read_list(reader, lambda: (reader.fixed(2), read_client(reader)))
        told["joined"] = read_list(reader, lambda: (reader.fixed(2), read_client(reader)))
        told["latencies"] = list(reader.counted(1024))
    else:
        told |= read_client(reader) if to == "server" else read_server(reader)
    reader.end()
    return told


def read_list(reader, read):
    count = reader.number()
    check(count <= 1024, "too many")
    items = [read() for _ in range(count)]
    check(all(a[0] < b[0] for a, b in zip(items, items[1:])), "not ascending")
    return items


def read_text(reader, limit):
    try:
        return reader.counted(limit).decode()
    except UnicodeDecodeError:
        raise Malformed("not UTF-8") from None


def read_client(reader):
    return dict(name=read_text(reader, 64), game=reader.counted(256).hex())


def read_server(reader):
    told = dict(name=read_text(reader, 64), micros=reader.number(), tick=reader.number())
    return dict(told, message=read_text(reader, 1024), game=reader.counted(1024).hex())


def self_test():
    """Tests of hand-made bytes for what no capture contains yet, and of varints."""
    for data, value in [("00", 0), ("7f", 127), ("8001", 128), ("ff" * 9 + "01", (1 << 64) - 1)]:
        assert Reader(bytes.fromhex(data)).number() == value
    for data in ["", "80", "8000", "ff" * 9 + "02", "80" * 10 + "01"]:
        refuses(Reader(bytes.fromhex(data)).number)

    frame = lambda data, to="server": read_frames(to, bytes.fromhex(data))
    assert frame("11 e8", "client") == [dict(frame="ping", id=232)]
    assert frame("12 05 8101 07 10 0000") == [
        dict(frame="pong", id=5, came=129, delay=7),
        dict(frame="padding", length=2),
    ]
    gaps = "02 0a 03 05 01 02 0100 0001"
    packets = [[9, 10], [6, 6], [3, 4]]
    assert frame(gaps) == [dict(frame="received", newest=10, delay=3, arrival=5, packets=packets)]
    [recent] = frame("05 03 0580 07 09")
    assert recent == dict(frame="recent", low=3, bits=0x8005, delay=7, arrival=9)
    packets = [[259, 259], [258, 258], [256, 256], [243, 243]]
    for base in (4, 258, 259):
        expected = dict(frame="received", recent=True, newest=259, delay=7, arrival=9, packets=packets)
        assert complete_recent(recent, base) == expected
    assert complete_recent(recent, 260)["newest"] == 515
    assert complete_recent(dict(recent, bits=5), 3)["newest"] == 3
    refuses(lambda: complete_recent(dict(recent, bits=5, low=2), 0))
    headless = dict(frame="message", channel=2, reliable=False, bytes=b"\x40\x03")
    assert frame("03 4003") == [dict(frame="ask"), headless]
    for data in ["", "00", "05", "0500000000", "06", "14", "1001", "02 0a 03 05 01 00", "01 01 00 00 02", "03" * 65, "04 00 00 00"]:
        refuses(lambda: frame(data))
    refuses(lambda: frame("13 05 01 00", "client"))

    # Tick 5: keys 1 and 2 down, 2 pressed, pointer at -1, 3, a field. Two more like it. Then tick
    # 9, joined from 8: key 1 up, 3 newly down and pressed, 7 pressed only, the pointer back by 3.
    first = "7c 02 01 02 01 02 01 06 01 aa 02"
    second = "1f 02 01 02 01 03 01 07 00 05"
    frames = frame("13 05 02" + first + second)
    same = dict(keys_down=[1, 2], pointer=[-1, 3], fields="aa")
    expected = [dict(same, tick=tick, since=tick, pressed=[2] if tick == 5 else []) for tick in (5, 6, 7)]
    last = dict(tick=9, since=8, keys_down=[2, 3], pressed=[3, 7], pointer=[-1, 0], fields="aa")
    assert frames == [dict(frame="input", inputs=expected + [last])], frames
    many = "20" + "01" + "00" * 30 + "80"
    [keys] = frame("13 00 01 04" + many)[0]["inputs"]
    assert keys["keys_down"] == [0, 255] and keys["pressed"] == [], keys
    refused = ["13 05 00", "13 05 01 80", "13 05 01 01 01", "13 05 02 00 01 00", "13 05 01 04 21", "13 05 01 40 40"]
    for data in refused + ["13 05 01 20 21" + "00" * 33]:
        refuses(lambda: frame(data))

    lobby = lambda to, data: read_lobby(to, bytes.fromhex(data))
    assert lobby("server", "01 02 c3a9 01 ff") == dict(kind="info", name="\u00e9", game="ff")
    assert lobby("server", "02 03") == dict(kind="loaded", resets=3)
    assert lobby("client", "02 0201") == dict(kind="welcome", player=258)
    server = dict(name="s", micros=1000, tick=3, message="m", game="")
    assert lobby("client", "01 0173 e807 03 016d 00") == dict(server, kind="info")
    assert lobby("client", "03 0173 e807 03 016d 00") == dict(server, kind="reset")
    roster = lobby("client", "04 01 0100 01 0200 0162 00 01 0300 0163 00 02 05 ff")
    assert roster == dict(
        kind="roster",
        left=[(1,)],
        changed=[(2, dict(name="b", game=""))],
        joined=[(3, dict(name="c", game=""))],
        latencies=[5, 255],
    ), roster
    for to, data in [("server", "03"), ("client", "05"), ("server", "02 03 00"), ("server", "01 01 ff 00")]:
        refuses(lambda: lobby(to, data))
    refuses(lambda: lobby("client", "04 02 0200 0100 00 00 00"))


def refuses(read):
    try:
        read()
    except Malformed:
        return
    raise AssertionError("these bytes must be refused")
