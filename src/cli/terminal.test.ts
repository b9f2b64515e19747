import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAge } from "./format.ts";
import { terminalText } from "./safe-text.ts";
import { fitLine, type OutputStream, Terminal, visibleWidth } from "./terminal.ts";

class Recorded implements OutputStream {
  text = "";
  readonly isTTY: boolean;
  readonly columns = 40;
  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }
  write(data: string | Uint8Array): boolean {
    this.text += typeof data === "string" ? data : new TextDecoder().decode(data);
    return true;
  }
}

/** The lines that a terminal would show; interprets cursor up, carriage return and clear to the end. */
function screen(text: string): string[] {
  const lines = [""];
  let row = 0;
  for (const part of text.match(/\u001b\[\??\d*[A-Za-z]|\n|\r|[^\u001b\n\r]+/g) ?? []) {
    const up = /^\u001b\[(\d+)A$/.exec(part);
    if (up !== null) row -= Number(up[1]);
    else if (part === "\u001b[0J") lines.splice(row, Infinity, "");
    else if (part === "\n") lines[++row] ??= "";
    else if (!part.startsWith("\u001b") && part !== "\r") lines[row] += part;
  }
  return lines.slice(0, -1);
}

test("printed lines appear above the live region, which is redrawn", () => {
  const out = new Recorded(true);
  const terminal = new Terminal(out, out, {});
  terminal.print("one");
  terminal.live(["a", "b"]);
  terminal.print("two");
  terminal.live(["c"]);
  terminal.warn("three");
  assert.deepEqual(screen(out.text), ["one", "two", "three", "c"]);
  terminal[Symbol.dispose]();
  assert.deepEqual(screen(out.text), ["one", "two", "three"]);
  assert.ok(out.text.lastIndexOf("\u001b[?25h") > out.text.lastIndexOf("\u001b[?25l"), "the cursor is shown again");
});

test("a live line never wraps", () => {
  const out = new Recorded(true);
  new Terminal(out, out, {}).live(["x".repeat(200)]);
  assert.equal(visibleWidth(screen(out.text)[0] ?? ""), 39);
  assert.equal(fitLine("\u001b[31mabcdef\u001b[39m", 4), "abc…");
});

test("without a terminal there is no live region and no colour", () => {
  const out = new Recorded(false);
  const terminal = new Terminal(out, out, {});
  terminal.live(["a"]);
  terminal.print(terminal.paint.bad("text"));
  assert.equal(out.text, "text\n");
});

test("NO_COLOR switches colours off on a terminal", () => {
  assert.equal(new Terminal(new Recorded(true), new Recorded(true), { NO_COLOR: "1" }).paint.enabled, false);
  assert.equal(new Terminal(new Recorded(true), new Recorded(true), { NO_COLOR: "" }).paint.enabled, true);
});

test("hostile text is shown, not obeyed", () => {
  assert.equal(
    terminalText("tab\tok \u001b[1;31mred\u001b]52;c;eA==\u0007"),
    "tab\tok \u001b[1;31mred\\x1b]52;c;eA==\\x07\u001b[0m",
  );
  assert.equal(terminalText("plain ünïcode"), "plain ünïcode");
});

test("ages have kubectl's short form", () => {
  const hour = 3_600_000;
  assert.deepEqual([5000, 192_000, 1_500_000, 2 * hour, 5.5 * hour, 30 * hour, 76 * hour, 300 * hour].map(formatAge), [
    "5s",
    "3m12s",
    "25m",
    "120m",
    "5h30m",
    "30h",
    "3d4h",
    "12d",
  ]);
});
