import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { SpdyDecoder, SpdyEncoder, SpdyError, type SpdyFrame } from "./spdy-frames.ts";
import { SpdySession } from "./spdy-session.ts";

/** Decodes frames from pieces of the given sizes, with data frames joined. */
function decoded(bytes: Buffer, sizes: readonly number[]): unknown[] {
  const decoder = new SpdyDecoder();
  const frames: unknown[] = [];
  const data = new Map<number, string>();
  const take = (frame: SpdyFrame): void => {
    if (frame.kind !== "data") {
      frames.push(frame);
      return;
    }
    data.set(frame.stream, (data.get(frame.stream) ?? "") + Buffer.from(frame.bytes).toString());
    if (frame.end) frames.push({ stream: frame.stream, text: data.get(frame.stream) });
  };
  let offset = 0;
  for (const size of [...sizes, bytes.length]) {
    for (const frame of decoder.push(bytes.subarray(offset, offset + size))) take(frame);
    offset += size;
  }
  return frames;
}

test("frames are the same for any fragmentation", () => {
  const encoder = new SpdyEncoder();
  const bytes = Buffer.concat([
    encoder.data(1, Buffer.from("hello "), false),
    encoder.ping(2),
    encoder.reset(3, 5),
    encoder.data(1, Buffer.from("world"), true),
    encoder.data(5, Buffer.alloc(0), true),
    encoder.goaway(),
  ]);
  const expected = [
    { kind: "ping", id: 2 },
    { kind: "reset", stream: 3, status: 5 },
    { stream: 1, text: "hello world" },
    { stream: 5, text: "" },
    { kind: "goaway", status: 0 },
  ];
  assert.deepEqual(decoded(bytes, []), expected);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 40 }), (sizes) => {
      assert.deepEqual(decoded(bytes, sizes), expected);
    }),
  );
});

test("invalid SPDY, and oversized frames, are rejected and never buffered", () => {
  const http = Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n");
  const version2 = Buffer.from([0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]);
  const unknownType = Buffer.from([0x80, 3, 0, 77, 0, 0, 0, 0]);
  const short = Buffer.from([0x80, 3, 0, 3, 0, 0, 0, 2, 0, 0]);
  const huge = Buffer.from([0x80, 3, 0, 2, 0, 0xff, 0xff, 0xff]);
  const streamZero = Buffer.from([0, 0, 0, 0, 0, 0, 0, 1, 65]);
  for (const bytes of [version2, unknownType, short, huge, streamZero]) {
    assert.throws(() => [...new SpdyDecoder().push(bytes)], SpdyError, bytes.toString("hex"));
  }
  // Text looks like data of an unknown stream: it is passed on in pieces and not kept.
  for (const frame of new SpdyDecoder().push(http)) assert.equal(frame.kind, "data");
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        for (const _frame of new SpdyDecoder().push(bytes));
      } catch (error) {
        assert.ok(error instanceof SpdyError);
      }
    }),
  );
});

test("streams carry data both ways, and end with the stream or with the connection", async () => {
  const [socket, far] = duplexPair();
  const received: Buffer[] = [];
  far.on("data", (chunk: Buffer) => received.push(chunk));
  const peer = new SpdyEncoder();
  const session = new SpdySession(socket);
  let got = "";
  const first = session.open({ streamType: "stdout" }, (bytes) => void (got += Buffer.from(bytes).toString()));
  const second = session.open({ streamType: "stdin" }, () => {});
  const third = session.open({ streamType: "error" }, () => {});
  const running = session.run(Buffer.alloc(0));
  await second.write(Buffer.alloc(100_000, "x"));
  second.end();
  await second.write(Buffer.from("more"));
  far.write(peer.data(1, Buffer.from("some text"), true));
  far.write(peer.reset(5, 1));
  far.write(peer.ping(8));
  await first.ended;
  await assert.rejects(third.opened, /refused \(1\)/);
  far.end();
  await running;
  assert.equal(got, "some text");
  await second.ended;
  const sent = decoded(Buffer.concat(received), []);
  const kinds = sent.map((frame) => (frame as { kind?: string; text?: string }).kind ?? "data");
  assert.deepEqual(kinds, ["open", "open", "open", "data", "ping"]);
  assert.equal((sent[3] as { readonly text: string }).text.length, 100_000);
});

test("a peer that speaks another protocol ends the session with an error", async () => {
  const [socket, far] = duplexPair();
  const session = new SpdySession(socket);
  const stream = session.open({}, () => {});
  far.write(Buffer.from([0x80, 9, 0, 1, 0, 0, 0, 0]));
  await assert.rejects(session.run(Buffer.alloc(0)), /version 9 of SPDY/);
  await assert.rejects(stream.opened, /ended/);
});
