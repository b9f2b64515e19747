import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { ClientSession } from "./client-session.ts";
import type { ClientStream, ResponseSink } from "./client-stream.ts";
import { StreamResetError } from "./errors.ts";
import {
  errorCodes,
  flags,
  frame,
  type Frame,
  FrameReader,
  frameTypes,
  numberFrame,
  preface,
  settingIds,
  settingsAcknowledged,
  settingsFrame,
} from "./frames.ts";
import { encodeFields } from "./hpack.ts";
import { HttpSyntaxError } from "./syntax-error.ts";

const limits = { streamWindowBytes: 1000, connectionWindowBytes: 100_000, headerListBytes: 200 };
const headers = encodeFields({ ":method": "POST" });
const hello = settingsFrame([]);

class Recorder implements ResponseSink {
  readonly seen: string[] = [];
  stream: ClientStream | undefined;

  fields(fields: ReadonlyMap<string, string>): void {
    this.seen.push(JSON.stringify(Object.fromEntries(fields)));
  }

  data(piece: Buffer): void {
    this.seen.push(piece.toString());
  }

  end(error: Error | undefined): void {
    this.seen.push(error === undefined ? "end" : `${error.name}: ${error.message}`);
  }
}

/** A session, and what it has sent since the last look. */
class Side {
  readonly events: string[] = [];
  readonly session: ClientSession;
  #sent: Buffer[] = [];

  constructor(first: Buffer = hello) {
    this.session = new ClientSession(limits, {
      // Its very first words are no frame.
      send: (bytes) =>
        void this.#sent.push(Buffer.from(bytes.subarray(bytes.indexOf(preface) === 0 ? preface.length : 0))),
      settled: () => void this.events.push("settled"),
      goAway: () => void this.events.push("goAway"),
      drained: () => void this.events.push("drained"),
    });
    if (first.length === 0) return;
    this.session.push(first);
    this.take();
  }

  /** Each frame as `type stream payload`. */
  take(): string[] {
    const bytes = Buffer.concat(this.#sent);
    this.#sent = [];
    return framesOf(bytes).map(({ type, flag, stream, payload }) => {
      const name = Object.entries(frameTypes).find(([, value]) => value === type)?.[0] ?? "";
      const isNumber = type === frameTypes.windowUpdate || type === frameTypes.resetStream;
      const content = isNumber ? payload.readUInt32BE(0) : payload.length;
      return `${name} ${stream} ${content}${(flag & flags.endStream) === 0 ? "" : " end"}`;
    });
  }

  ask(body = "", holdsBack = false): Recorder {
    const recorder = new Recorder();
    recorder.stream = this.session.request(headers, Buffer.from(body), recorder, holdsBack);
    return recorder;
  }
}

function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  const reader = new FrameReader();
  // A reader begins with settings, as each side does.
  reader.push(settingsAcknowledged, () => true);
  reader.push(bytes, (taken) => frames.push({ ...taken, payload: Buffer.from(taken.payload) }) > 0);
  return frames;
}

const head = (stream: number, fields: Record<string, string>, flag = 0): Buffer =>
  frame(frameTypes.headers, flags.endHeaders | flag, stream, encodeFields(fields));
const data = (stream: number, text: string, flag = 0): Buffer =>
  frame(frameTypes.data, flag, stream, Buffer.from(text));
const ok = { ":status": "200" };

describe("the client's side of an HTTP/2 connection", () => {
  test("begins with the preface, its settings and its window", () => {
    const sent: Buffer[] = [];
    const session = new ClientSession(limits, { send: (bytes) => void sent.push(bytes), drained: () => {} });
    const bytes = Buffer.concat(sent);
    assert.deepEqual(bytes.subarray(0, preface.length), preface);
    assert.deepEqual(
      framesOf(bytes.subarray(preface.length)).map(({ type }) => type),
      [frameTypes.settings, frameTypes.windowUpdate],
    );
    assert.ok(session.isOpen && session.isIdle);
  });

  test("gives headers, body and trailers of each response, however they are cut into pieces", () => {
    const answers = Buffer.concat([
      hello,
      head(1, { ":status": "103", link: "x" }),
      head(3, { ...ok, a: "3" }),
      head(1, { ...ok, a: "1" }),
      data(3, "three"),
      frame(frameTypes.data, flags.padded, 1, Buffer.concat([Buffer.of(2), Buffer.from("one"), Buffer.alloc(2)])),
      head(1, { status: "0" }, flags.endStream),
      data(3, "", flags.endStream),
    ]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (sizes) => {
        const side = new Side(Buffer.alloc(0));
        const [first, second] = [side.ask(), side.ask("body")];
        // The buffer of a chunk is used again.
        const shared = Buffer.alloc(40);
        for (let at = 0, index = 0; at < answers.length; index++) {
          const size = Math.min(sizes[index % sizes.length] ?? 1, answers.length - at);
          answers.copy(shared, 0, at, at + size);
          side.session.push(shared.subarray(0, size));
          shared.fill(0);
          at += size;
        }
        assert.deepEqual(first.seen, ['{":status":"200","a":"1"}', "one", '{"status":"0"}', "end"]);
        assert.deepEqual(second.seen, ['{":status":"200","a":"3"}', "three", "end"]);
        assert.ok(side.session.isIdle);
      }),
    );
  });

  test("a request without a body ends with its headers, and long headers continue", () => {
    const side = new Side();
    side.ask();
    side.ask("abc");
    assert.deepEqual(side.take(), [`headers 1 ${headers.length} end`, `headers 3 ${headers.length}`, "data 3 3 end"]);
    const long = encodeFields({ a: "x".repeat(20_000) });
    side.session.request(long, Buffer.alloc(0), new Recorder());
    assert.deepEqual(side.take(), ["headers 5 16384 end", `continuation 5 ${long.length - 16_384}`]);
  });

  test("sends no more than the server takes on the stream and on the connection", () => {
    const side = new Side(settingsFrame([[settingIds.initialWindowSize, 10]]));
    side.ask("x".repeat(25));
    assert.deepEqual(side.take(), [`headers 1 ${headers.length}`, "data 1 10"]);
    side.session.push(numberFrame(frameTypes.windowUpdate, 0, 1000));
    assert.deepEqual(side.take(), []);
    side.session.push(numberFrame(frameTypes.windowUpdate, 1, 5));
    assert.deepEqual(side.take(), ["data 1 5"]);
    side.session.push(settingsFrame([[settingIds.initialWindowSize, 8]]));
    side.session.push(numberFrame(frameTypes.windowUpdate, 1, 2));
    assert.deepEqual(side.take(), ["settings 0 0 end"], "a smaller window is paid back first");
    side.session.push(settingsFrame([[settingIds.initialWindowSize, 1000]]));
    assert.deepEqual(side.take(), ["settings 0 0 end", "data 1 10 end"]);
    side.ask("x".repeat(70_000));
    const sent = side.take().filter((each) => each.startsWith("data"));
    assert.deepEqual(sent, ["data 3 1000"]);
    side.session.push(numberFrame(frameTypes.windowUpdate, 3, 100_000));
    const rest = side.take().map((each) => Number(each.split(" ")[2]));
    assert.equal(
      rest.reduce((sum, bytes) => sum + bytes, 0),
      65_535 + 1000 - 25 - 1000,
      "the connection's window is used up",
    );
  });

  test("a server that keeps a smaller table is told once that none is used", () => {
    const side = new Side(settingsFrame([[settingIds.headerTableSize, 0]]));
    side.ask();
    side.ask();
    assert.deepEqual(side.take(), [`headers 1 ${headers.length + 1} end`, `headers 3 ${headers.length} end`]);
  });

  test("requests beyond the server's limit wait for others to end", () => {
    const side = new Side(settingsFrame([[settingIds.maxConcurrentStreams, 2]]));
    const asked = [side.ask(), side.ask(), side.ask(), side.ask()];
    assert.equal(side.session.room, -2);
    assert.equal(side.take().length, 2);
    asked[2]?.stream?.cancel();
    side.session.push(head(1, ok, flags.endStream));
    assert.deepEqual(side.take(), [`headers 5 ${headers.length} end`]);
    assert.deepEqual(asked[2]?.seen, []);
  });

  test("a hundred requests do not wait for the server's limit, and without a limit none waits", () => {
    const side = new Side(Buffer.alloc(0));
    for (let count = 0; count < 150; count++) side.ask();
    assert.equal(side.take().filter((each) => each.startsWith("headers")).length, 100);
    side.session.push(hello);
    assert.equal(side.take().filter((each) => each.startsWith("headers")).length, 50);
    assert.equal(side.session.room, Number.POSITIVE_INFINITY);
  });
});

describe("what a server sends ahead", () => {
  test("is granted anew as it comes, or as the reader uses it", () => {
    const side = new Side();
    side.ask();
    const slow = side.ask("", true);
    side.session.push(Buffer.concat([head(1, ok), head(3, ok)]));
    side.take();
    side.session.push(data(1, "x".repeat(600)));
    side.session.push(data(3, "x".repeat(600)));
    assert.deepEqual(side.take(), ["windowUpdate 1 600"]);
    slow.stream?.consumed(600);
    assert.deepEqual(side.take(), ["windowUpdate 3 600"]);
  });

  test("beyond its window is an error", () => {
    const side = new Side();
    side.ask("", true);
    side.session.push(Buffer.concat([head(1, ok), data(1, "x".repeat(1000))]));
    assert.throws(() => side.session.push(data(1, "x")), /sends more than it may/);
  });

  test("counts for the connection also where nobody reads it", () => {
    const side = new Side();
    const asked = side.ask();
    asked.stream?.cancel();
    assert.deepEqual(side.take().at(-1), `resetStream 1 ${errorCodes.cancel}`);
    for (let sent = 0; sent < 50_000; sent += 1000) side.session.push(data(1, "x".repeat(1000)));
    assert.deepEqual([side.take(), asked.seen], [["windowUpdate 0 50000"], []]);
  });
});

describe("an end", () => {
  test("of a stream by the server, or of the connection, is told once", () => {
    const side = new Side();
    const [reset, lost] = [side.ask(), side.ask()];
    side.session.push(numberFrame(frameTypes.resetStream, 1, 2));
    side.session.end(new Error("gone"));
    side.session.end(new Error("again"));
    assert.deepEqual(reset.seen, ["StreamResetError: the server reset the request: INTERNAL_ERROR"]);
    assert.deepEqual(lost.seen, ["Error: gone"]);
    assert.throws(() => side.ask(), /gone/);
  });

  test("a response that is complete before the request is sent ends both", () => {
    const side = new Side(settingsFrame([[settingIds.initialWindowSize, 0]]));
    const asked = side.ask("body");
    side.session.push(head(1, ok, flags.endStream));
    assert.deepEqual(asked.seen, ['{":status":"200"}', "end"]);
    assert.deepEqual(side.take().at(-1), `resetStream 1 ${errorCodes.cancel}`);
  });

  test("a server that goes away finishes what it has begun", () => {
    const side = new Side(settingsFrame([[settingIds.maxConcurrentStreams, 2]]));
    const [begun, refused, waiting] = [side.ask(), side.ask(), side.ask()];
    side.session.push(frame(frameTypes.goAway, 0, 0, Buffer.from([0, 0, 0, 1, 0, 0, 0, 0])));
    for (const { seen } of [refused, waiting]) {
      assert.deepEqual(seen, ["StreamResetError: the server takes no more requests"]);
    }
    assert.deepEqual([begun.seen, side.events, side.session.isOpen], [[], ["settled", "goAway"], false]);
    side.session.push(head(1, ok, flags.endStream));
    assert.deepEqual([begun.seen.at(-1), side.events.at(-1)], ["end", "drained"]);
    assert.equal(new StreamResetError(errorCodes.refusedStream).code, errorCodes.refusedStream);
  });

  test("a server that ends the connection for a reason is quoted", () => {
    const side = new Side();
    const [begun, refused] = [side.ask(), side.ask()];
    side.session.push(frame(frameTypes.goAway, 0, 0, Buffer.from([0, 0, 0, 1, 0, 0, 0, 11])));
    assert.deepEqual(begun.seen, ["ConnectionLostError: the server ended the connection: ENHANCE_YOUR_CALM"]);
    assert.deepEqual(refused.seen, ["StreamResetError: the server takes no more requests: ENHANCE_YOUR_CALM"]);
    assert.deepEqual(side.events, ["settled", "goAway", "drained"]);
  });

  test("a response without a status is refused, and no other", () => {
    const side = new Side();
    const [bad, well] = [side.ask(), side.ask()];
    side.session.push(Buffer.concat([head(1, { a: "b" }), data(1, "x"), head(3, ok, flags.endStream)]));
    assert.deepEqual(bad.seen, ["StreamResetError: the response has no status"]);
    assert.deepEqual(well.seen, ['{":status":"200"}', "end"]);
    assert.equal(side.take()[2], `resetStream 1 ${errorCodes.protocolError}`);
  });

  test("a retired session takes no request, and is drained when a waiting one is canceled", () => {
    const side = new Side(settingsFrame([[settingIds.maxConcurrentStreams, 0]]));
    const asked = side.ask();
    side.session.retire();
    assert.throws(() => side.ask(), { name: "StreamResetError", code: errorCodes.refusedStream });
    asked.stream?.cancel();
    assert.deepEqual(side.events, ["settled", "drained"]);
  });

  test("a session that is retired is drained with its last response", () => {
    const side = new Side();
    const asked = side.ask();
    side.session.retire();
    assert.deepEqual(side.events, ["settled"]);
    asked.stream?.cancel();
    assert.deepEqual([side.events.at(-1), asked.seen], ["drained", []]);
  });
});

test("pings are answered, and the server's answers are told", () => {
  const side = new Side();
  let answers = 0;
  side.session.ping(() => answers++);
  assert.deepEqual(side.take(), ["ping 0 8"]);
  side.session.push(frame(frameTypes.ping, 0, 0, Buffer.from("12345678")));
  assert.deepEqual([side.take(), answers], [["ping 0 8 end"], 0]);
  side.session.push(frame(frameTypes.ping, flags.ack, 0, Buffer.alloc(8)));
  side.session.push(frame(frameTypes.ping, flags.ack, 0, Buffer.alloc(8)));
  assert.equal(answers, 1);
});

const broken: readonly (readonly [name: string, bytes: Buffer, words: RegExp])[] = [
  ["a promise", frame(frameTypes.pushPromise, 0, 1, Buffer.alloc(8)), /pushes/],
  ["a frame of a request that was not made", head(3, ok), /belongs to no request/],
  ["data without headers of a stream of its own", data(2, "x"), /belongs to no request/],
  ["a body before the headers", data(1, "x"), /before the headers/],
  ["a long frame", Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 1]), /longer than/],
  [
    "an interrupted header section",
    Buffer.concat([frame(frameTypes.headers, 0, 1, encodeFields(ok)), data(1, "x")]),
    /breaks off/,
  ],
  ["a continuation of nothing", frame(frameTypes.continuation, 0, 1, encodeFields(ok)), /no beginning/],
  ["headers without end", frame(frameTypes.headers, 0, 1, Buffer.alloc(201)), /exceed/],
  ["headers that are no HPACK", frame(frameTypes.headers, flags.endHeaders, 1, Buffer.from([0xff])), /HPACK/],
  ["settings that are cut off", frame(frameTypes.settings, 0, 0, Buffer.alloc(5)), /cut off/],
  ["a frame size of nothing", settingsFrame([[settingIds.maxFrameSize, 0]]), /frame size/],
  ["too large a first window", settingsFrame([[settingIds.initialWindowSize, 2 ** 31]]), /too large/],
  ["too large a window", numberFrame(frameTypes.windowUpdate, 0, 2 ** 31 - 1), /too large/],
  ["a short ping", frame(frameTypes.ping, 0, 0, Buffer.alloc(7)), /8 bytes/],
  ["a short goodbye", frame(frameTypes.goAway, 0, 0, Buffer.alloc(7)), /cut off/],
  ["a short reset", frame(frameTypes.resetStream, 0, 1, Buffer.alloc(3)), /4 bytes/],
  ["padding beyond the frame", frame(frameTypes.data, flags.padded, 1, Buffer.of(5, 1)), /padded/],
];
for (const [name, bytes, words] of broken) {
  test(`${name} is a syntax error`, () => {
    const side = new Side();
    side.ask();
    assert.throws(
      () => side.session.push(bytes),
      (error) => error instanceof HttpSyntaxError && words.test(error.message),
    );
  });
}

test("any bytes give an error or nothing", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (pieces) => {
      const side = new Side();
      side.ask("x", true);
      try {
        for (const piece of pieces) side.session.push(Buffer.from(piece));
      } catch (error) {
        assert.ok(error instanceof HttpSyntaxError, String(error));
      }
    }),
  );
});
