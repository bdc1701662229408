// A producer, a consumer or a member of a sync group on NDNts, for tests; the first two speak as peer.py does.
//
//     node peer.mjs produce tcp://127.0.0.1:6363 /prefix FRESHNESS_MS
//     node peer.mjs consume udp://127.0.0.1:6363
//     node peer.mjs sync tcp://127.0.0.1:6363 /member /group [inherit]
//
// A member publishes the content of its first line, in hexadecimal digits, and a new number every half second. It says
// what others have published, and requests the names in further lines.
//
// PRESCIENT_PEERS names the folder with NDNts: modules are not looked up from the working directory.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const modules = createRequire(`${process.env.PRESCIENT_PEERS}/node/any.js`);
const load = (name) => import(pathToFileURL(modules.resolve(name)));
const { consume, produce } = await load("@ndn/endpoint");
const { Forwarder } = await load("@ndn/fw");
const { TcpTransport, UdpTransport, UnixTransport } = await load("@ndn/node-transport");
const { enableNfdPrefixReg } = await load("@ndn/nfdmgmt");
const { Data, Interest, Name, digestSigning } = await load("@ndn/packet");

const [verb, uri, prefix, last, option] = process.argv.slice(2);
const say = (fields) => console.log(JSON.stringify(fields));

const url = new URL(uri);
const fw = Forwarder.getDefault();
const options = { fw, addRoutes: verb === "produce" ? [] : ["/"] };
let face;
switch (url.protocol) {
  case "tcp:":
    face = await TcpTransport.createFace(options, url.hostname, Number(url.port));
    break;
  case "udp:":
    face = await UdpTransport.createFace(options, url.hostname, Number(url.port));
    break;
  default:
    face = await UnixTransport.createFace(options, url.pathname);
}
// Opened where it is read: lines that arrive before are lost.
const lines = () => createInterface({ input: process.stdin });

if (verb === "produce") {
  const reg = enableNfdPrefixReg(face, { signer: digestSigning });
  let waiting = [];
  const registered = new Promise((resolve) => {
    fw.addEventListener("pktrx", ({ packet }) => {
      if (packet.l3 instanceof Data && packet.l3.name.toString().includes("/8=rib/")) resolve();
    });
  });
  produce(prefix, async (interest) => {
    say({ interest: String(interest.name), must_be_fresh: interest.mustBeFresh, can_be_prefix: interest.canBePrefix,
      lifetime: interest.lifetime });
    return new Promise((resolve) => waiting.push({ wish: interest.name, resolve }));
  }, { concurrency: 64, dataSigner: digestSigning });
  await registered;
  say({ registered: true });
  for await (const line of lines()) {
    const { name: text, content } = JSON.parse(line);
    const name = new Name(text);
    const isMeant = ({ wish }) => wish.isPrefixOf(name);
    for (const { resolve } of waiting.filter(isMeant)) {
      resolve(new Data(name, Data.FreshnessPeriod(Number(last)), Buffer.from(content)));
    }
    waiting = waiting.filter((one) => !isMeant(one));
  }
  reg?.disable?.();
} else if (verb === "sync") {
  const { SvSync } = await load("@ndn/svs");
  // NDNts registers the group's name and captures it. Where others register that of its version 3, Interests for the
  // longer name go to both only if the shorter one is inherited.
  const flags = option === "inherit" ? { flagChildInherit: true, flagCapture: false } : {};
  enableNfdPrefixReg(face, { signer: digestSigning, ...flags });
  const sync = await SvSync.create({ syncPrefix: new Name(last), svs3: true, suppressionPeriod: 200, signer: digestSigning,
    verifier: digestSigning });
  sync.addEventListener("update", ({ id, hiSeqNum }) =>
    say({ member: String(id.name), boot: id.boot, sequence: hiSeqNum }));
  sync.addEventListener("rxerror", ({ detail }) => say({ refused: String(detail[1]) }));
  const own = sync.add(prefix);
  let publication;
  for await (const line of lines()) {
    const { publish, name } = JSON.parse(line);
    if (publish !== undefined) {
      publication = Buffer.from(publish, "hex");
      produce(prefix, async (interest) => new Data(interest.name, Data.FreshnessPeriod(1000), publication),
        { dataSigner: digestSigning });
      setInterval(() => own.seqNum++, 500);
      own.seqNum++;
    } else {
      const data = await consume(new Interest(name), { verifier: digestSigning });
      say({ data: String(data.name), content: Buffer.from(data.content).toString("hex") });
    }
  }
} else {
  say({ connected: true });
  for await (const line of lines()) {
    const wish = JSON.parse(line);
    const interest = new Interest(wish.name);
    interest.mustBeFresh = wish.must_be_fresh ?? false;
    interest.canBePrefix = wish.can_be_prefix ?? false;
    interest.lifetime = wish.lifetime ?? 4000;
    try {
      const data = await consume(interest, { verifier: digestSigning });
      say({ data: String(data.name), content: Buffer.from(data.content).toString(),
        freshness: data.freshnessPeriod });
    } catch (error) {
      say(/nack|reject/i.test(String(error)) ? { nack: String(error) } : { timeout: true });
    }
  }
}
process.exit(0);
