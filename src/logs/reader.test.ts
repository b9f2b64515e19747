import assert from "node:assert/strict";
import { renameSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { findTail } from "./tail.ts";
import type { LogLine } from "./cri-log.ts";
import {
  followLog,
  followLogText,
  type LogFiles,
  type LogStore,
  readLog,
  readLogText,
  type TextRange,
} from "./reader.ts";
import { FileError, type FileInfo } from "../ports/files.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { systemFiles } from "../linux/files/files.ts";
import { testDirectory } from "../linux/processes/testing.ts";

const encoder = new TextEncoder();
const directory = "/logs/web";
const bytesOf = (text: string): Uint8Array => encoder.encode(text);
const textOf = (line: LogLine): string => new TextDecoder().decode(line.text);
let second = 0;
const raw = (text: string, tag = "F", stream = "stdout"): string =>
  `2026-11-20T14:${String(Math.floor(second / 60) % 60).padStart(2, "0")}:${String(second++ % 60).padStart(2, "0")}.000000001Z ${stream} ${tag} ${text}\n`;

/** A directory of log files in memory; rename keeps inodes. */
class MemoryLogs implements LogFiles, LogStore {
  readonly files = this;
  readonly compression = { gunzip: (path: string) => this.#gunzip(path) };
  readonly contents = new Map<string, { inode: number; data: Uint8Array }>();
  bytesRead = 0;
  /** Runs once, between a read's stat of the name and the read. */
  beforeRead: (() => void) | undefined;
  #inode = 1;

  append(name: string, text: string): void {
    const path = `${directory}/${name}`;
    const file = this.contents.get(path) ?? { inode: this.#inode++, data: new Uint8Array(0) };
    file.data = Buffer.concat([file.data, bytesOf(text)]);
    this.contents.set(path, file);
  }

  rename(from: string, to: string): void {
    const file = this.contents.get(`${directory}/${from}`);
    assert.ok(file);
    this.contents.delete(`${directory}/${from}`);
    this.contents.set(`${directory}/${to}`, file);
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    const file = this.contents.get(path);
    if (file === undefined) return undefined;
    return {
      type: "file",
      size: file.data.length,
      mode: 0o640,
      modified: 0,
      inode: file.inode,
      device: 1,
    };
  }

  async readRange(path: string, offset: number, length: number): Promise<Uint8Array> {
    this.beforeRead?.();
    this.beforeRead = undefined;
    const file = this.contents.get(path);
    if (file === undefined) throw new FileError("ENOENT", path, "no such file");
    const bytes = file.data.subarray(offset, offset + length);
    this.bytesRead += bytes.length;
    return bytes;
  }

  async list(): Promise<{ name: string; type: "file" }[]> {
    return [...this.contents.keys()].map((path) => ({
      name: path.slice(directory.length + 1),
      type: "file" as const,
    }));
  }

  /** Compresses an older file as rotation does. */
  pack(name: string): void {
    const file = this.contents.get(`${directory}/${name}`);
    assert.ok(file);
    this.contents.delete(`${directory}/${name}`);
    this.contents.set(`${directory}/${name}.gz`, { inode: this.#inode++, data: gzipSync(file.data) });
  }

  async *#gunzip(path: string): AsyncGenerator<Uint8Array> {
    const file = this.contents.get(path);
    if (file === undefined) throw new FileError("ENOENT", path, "no such file");
    if (file.data[0] !== 0x1f) throw new FileError("EINVAL", path, "damaged gzip file");
    const data = gunzipSync(file.data);
    for (let at = 0; at < data.length; at += 100) yield data.subarray(at, at + 100);
  }

  watch(): Disposable {
    return { [Symbol.dispose]: () => {} };
  }
}

async function collect(lines: AsyncIterable<LogLine>): Promise<string[]> {
  const texts: string[] = [];
  for await (const line of lines) texts.push(textOf(line));
  return texts;
}

test("the tail of a large log is found without reading all of it", async () => {
  const files = new MemoryLogs();
  files.append("0.log", Array.from({ length: 50_000 }, (_, index) => raw(`line ${index}`)).join(""));
  const texts = await collect(readLog(files, `${directory}/0.log`, { tailLines: 3 }));
  assert.deepEqual(texts, ["line 49997", "line 49998", "line 49999"]);
  assert.ok(files.bytesRead < 200_000, `${files.bytesRead} bytes were read`);
});

test("the tail counts joined lines, and excludes lines of the other stream between their pieces", async () => {
  const files = new MemoryLogs();
  files.append(
    "0.log",
    raw("before") +
      raw("a", "P") +
      raw("e1", "F", "stderr") +
      raw("b", "P") +
      raw("e2", "F", "stderr") +
      raw("c") +
      raw("last"),
  );
  const tail = (tailLines: number): Promise<string[]> => collect(readLog(files, `${directory}/0.log`, { tailLines }));
  assert.deepEqual(await tail(0), []);
  assert.deepEqual(await tail(1), ["last"]);
  assert.deepEqual(await tail(2), ["abc", "last"]);
  assert.deepEqual(await tail(3), ["e2", "abc", "last"]);
  assert.deepEqual(await tail(4), ["e1", "e2", "abc", "last"]);
  assert.deepEqual(await tail(5), ["before", "e1", "e2", "abc", "last"]);
  assert.deepEqual(await tail(50), ["before", "e1", "e2", "abc", "last"]);
});

test("every tail of a random log equals the end of the whole log", async () => {
  let seed = 7;
  const random = (): number => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  for (let round = 0; round < 40; round++) {
    const files = new MemoryLogs();
    let text = "";
    for (let count = 0; count < 30; count++) {
      text += raw("x".repeat(random() * 40) + count, random() < 0.4 ? "P" : "F", random() < 0.5 ? "stdout" : "stderr");
    }
    // Both streams end with complete lines, because a tail counts an unfinished line as one.
    text += raw("end", "F", "stderr") + raw("end");
    files.append("0.log", text);
    const all = await collect(readLog(files, `${directory}/0.log`, {}));
    for (let lines = 0; lines <= all.length + 1; lines++) {
      const tail = await collect(readLog(files, `${directory}/0.log`, { tailLines: lines }));
      assert.deepEqual(tail, lines === 0 ? [] : all.slice(-lines), `round ${round}, ${lines} lines`);
    }
  }
});

test("a file without a newline has one line", async () => {
  const bytes = bytesOf("x".repeat(10));
  const read = async (offset: number, length: number): Promise<Uint8Array> => bytes.subarray(offset, offset + length);
  assert.deepEqual(await findTail(read, 10, 5), { offset: 0, skip: 0, found: 1 });
});

test("the error for a missing log has its path", async () => {
  await assert.rejects(collect(readLog(new MemoryLogs(), `${directory}/0.log`, {})), /no log at \/logs\/web\/0\.log/);
});

/** Follows while `script` changes the files; each step runs once the existing lines are read. */
async function follow(
  files: MemoryLogs,
  path: string,
  script: readonly (() => void)[],
  tailLines?: number,
): Promise<string[]> {
  const steps = [...script];
  const options = {
    ...(tailLines !== undefined && { tailLines }),
    signal: AbortSignal.timeout(10_000),
    ended: async () => {
      const step = steps.shift();
      step?.();
      return step === undefined;
    },
  };
  return collect(followLog(files, systemClock, path, options));
}

test("a follower crosses a rotation without losing or repeating a line", async () => {
  const files = new MemoryLogs();
  files.append("0.log", raw("1") + raw("cut ", "P"));
  const texts = await follow(files, `${directory}/0.log`, [
    () => {
      files.append("0.log", raw("here"));
      files.append("0.log", raw("written just before the rotation"));
      files.rename("0.log", "0.log.20261120-140000");
      files.append("0.log.20261120-140000", raw("written between rename and reopen"));
      files.append("0.log", raw("2"));
    },
    () => {
      files.rename("0.log", "0.log.20261120-140001");
      files.append("0.log", raw("3"));
      files.rename("0.log", "0.log.20261120-140002");
      files.append("0.log", raw("4"));
    },
  ]);
  assert.deepEqual(texts, [
    "1",
    "cut here",
    "written just before the rotation",
    "written between rename and reopen",
    "2",
    "3",
    "4",
  ]);
});

test("a rotation between the stat of the name and the read is noticed", async () => {
  const files = new MemoryLogs();
  files.append("0.log", raw("first"));
  const texts = await follow(files, `${directory}/0.log`, [
    () => {
      files.append("0.log", raw("second"));
      files.beforeRead = () => {
        files.rename("0.log", "0.log.20261120-140000");
        files.append("0.log", raw("x".repeat(200)) + raw("third"));
      };
    },
    () => {},
  ]);
  assert.deepEqual(texts, ["first", "second", "x".repeat(200), "third"]);
});

test("a follower continues with the container's next instance, and holds back an unfinished line until then", async () => {
  const files = new MemoryLogs();
  files.append("0.log", raw("old") + raw("tail of old"));
  const texts = await follow(
    files,
    `${directory}/0.log`,
    [
      () => files.append("0.log", raw("dy", "P")),
      () => {},
      () => {},
      () => {
        files.append("0.log", raw("ing"));
        files.append("1.log", raw("new"));
        files.append("2.log", raw("newest"));
      },
      () => {},
      () => {},
      () => {},
      () => {},
    ],
    1,
  );
  assert.deepEqual(texts, ["tail of old", "dy", "ing", "new", "newest"]);
});

test("a missing log is waited for", async () => {
  const files = new MemoryLogs();
  const texts = await follow(files, `${directory}/0.log`, [() => {}, () => files.append("0.log", raw("at last"))]);
  assert.deepEqual(texts, ["at last"]);
});

test("a truncated log is read from its new beginning", async () => {
  const files = new MemoryLogs();
  files.append("0.log", raw("before ".repeat(20)));
  const texts = await follow(files, `${directory}/0.log`, [
    () => {
      const file = files.contents.get(`${directory}/0.log`);
      assert.ok(file);
      file.data = bytesOf(raw("after"));
    },
  ]);
  assert.deepEqual(texts.slice(1), ["after"]);
});

test("an aborted follower ends quietly", async () => {
  const files = new MemoryLogs();
  files.append("0.log", raw("one"));
  const controller = new AbortController();
  const texts: string[] = [];
  for await (const line of followLog(files, systemClock, `${directory}/0.log`, {
    ended: async () => false,
    signal: controller.signal,
  })) {
    texts.push(textOf(line));
    controller.abort();
  }
  assert.deepEqual(texts, ["one"]);
});

test("the whole log and any tail of it include rotated and compressed files", async () => {
  const files = new MemoryLogs();
  let seed = 3;
  const random = (): number => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  const written: string[] = [];
  for (let rotation = 0; rotation < 4; rotation++) {
    for (let count = 0; count < 7; count++) {
      const text = `${rotation}.${count}`;
      const cut = random() < 0.3;
      files.append("0.log", cut ? raw(text, "P") : raw(text));
      written.push(cut ? text : `${text}\n`);
    }
    if (rotation === 3) break;
    const name = `0.log.2026112${rotation}-140000`;
    files.rename("0.log", name);
    if (rotation < 2) files.pack(name);
  }
  files.append("0.log", raw("end"));
  const all = `${written.join("")}end`.split("\n");
  assert.deepEqual(await collect(readLog(files, `${directory}/0.log`, {})), all);
  for (let lines = 0; lines <= all.length + 1; lines++) {
    const tail = await collect(readLog(files, `${directory}/0.log`, { tailLines: lines }));
    assert.deepEqual(tail, lines === 0 ? [] : all.slice(-lines), `${lines} lines`);
  }
});

test("a corrupt compressed file does not hide what came after it", async () => {
  const files = new MemoryLogs();
  files.append("0.log.20261120-140000.gz", "no gzip");
  files.append("0.log", raw("1"));
  assert.deepEqual(await collect(readLog(files, `${directory}/0.log`, {})), ["1"]);
  assert.deepEqual(await collect(readLog(files, `${directory}/0.log`, { tailLines: 5 })), ["1"]);
});

test("a follower finds its file again after compression", async () => {
  const files = new MemoryLogs();
  files.append("0.log", raw("1"));
  const texts = await follow(files, `${directory}/0.log`, [
    () => {
      files.append("0.log", raw("2"));
      files.rename("0.log", "0.log.20261120-140000");
      files.append("0.log", raw("3"));
      files.rename("0.log", "0.log.20261120-140001");
      files.append("0.log", raw("4"));
      files.pack("0.log.20261120-140000");
    },
  ]);
  assert.deepEqual(texts, ["1", "2", "3", "4"]);
});

test("an undone rotation repeats nothing", async () => {
  const files = new MemoryLogs();
  files.append("0.log", raw("1"));
  const texts = await follow(files, `${directory}/0.log`, [
    () => {
      files.append("0.log", raw("2"));
      files.rename("0.log", "0.log.20261120-140000");
    },
    () => {
      files.rename("0.log.20261120-140000", "0.log");
      files.append("0.log", raw("3"));
    },
  ]);
  assert.deepEqual(texts, ["1", "2", "3"]);
});

const allText: TextRange = { tailLines: undefined, stream: undefined, timestamps: false, include: undefined };

async function wholeText(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const kept: Uint8Array[] = [];
  for await (const piece of pieces) kept.push(piece);
  return Buffer.concat(kept).toString();
}

/** Of various lengths, so that reads end anywhere in them. */
const manyLines = Array.from({ length: 60_000 }, (_, index) => `line ${index} ${"x".repeat(index % 97)}`);

test("the text of a real log of several MiB is whole, however late its chunks are consumed", async () => {
  using logs = testDirectory();
  const path = logs.join("0.log");
  writeFileSync(path, manyLines.map((line) => raw(line)).join(""));
  const store = { files: systemFiles, compression: new MemoryLogs().compression };
  const expected = manyLines.map((line) => `${line}\n`);
  assert.equal(await wholeText(readLogText(store, path, allText)), expected.join(""));
  const tail = await wholeText(readLogText(store, path, { ...allText, tailLines: 30_000 }));
  assert.equal(tail, expected.slice(-30_000).join(""));
});

test("a real log that is rotated while being read is read to its end, followed by the new one", async () => {
  using logs = testDirectory();
  const path = logs.join("0.log");
  writeFileSync(path, manyLines.map((line) => raw(line)).join(""));
  const store = { files: systemFiles, compression: new MemoryLogs().compression };
  const stop = new AbortController();
  let pieces = 0;
  let text = "";
  const ended = async (): Promise<boolean> => text.endsWith("new\n");
  for await (const piece of followLogText(store, systemClock, path, { ...allText, ended, signal: stop.signal })) {
    text += Buffer.from(piece).toString();
    if (++pieces !== 1) continue;
    renameSync(path, `${path}.20261120-140000`);
    writeFileSync(path, raw("new"));
  }
  assert.equal(text, `${manyLines.join("\n")}\nnew\n`);
});
