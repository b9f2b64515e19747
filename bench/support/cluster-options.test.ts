import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterOptions } from "./cluster-options.ts";

const { read } = clusterOptions;
const program = process.execPath;

test("rest and dead containers are measured by default, and another kubelet beside podwright", () => {
  const nothing = { kubelet: undefined, alone: false };
  assert.deepEqual(read({}), { ...nothing, rest: [20, 50, 100, 250], dead: 5000 });
  assert.deepEqual(read({ rest: "5,7", dead: "30" }), { ...nothing, rest: [5, 7], dead: 30 });
  assert.deepEqual(read({ dead: "0" }), { ...nothing, rest: [20, 50, 100, 250], dead: 0 });
  assert.deepEqual(read({ rest: "0" }), { ...nothing, rest: [], dead: 0 });
  assert.deepEqual(read({ rest: "5", dead: "9", kubelet: program }), {
    rest: [5],
    dead: 9,
    kubelet: program,
    alone: false,
  });
  assert.deepEqual(read({ rest: "5", kubelet: program, alone: true }), {
    rest: [5],
    dead: 0,
    kubelet: program,
    alone: true,
  });
});

test("an impossible measurement is rejected with the option's name", () => {
  for (const [given, words] of [
    [{ rest: "x" }, /^--rest: "x" is no number of at least 1/u],
    [{ rest: "20," }, /^--rest: "" is no number/u],
    [{ rest: "20,0" }, /^--rest: "0" is no number/u],
    [{ dead: "x" }, /^--dead: "x" is no number of at least 1/u],
    [{ dead: "5,6" }, /^--dead: "5,6" is no number/u],
    [{ dead: "1.5" }, /^--dead: "1\.5" is no number/u],
    [{ rest: "0", dead: "5" }, /^--dead needs --rest/u],
    [{ alone: true }, /^--alone needs --kubelet/u],
    [{ kubelet: program, alone: true, dead: "5" }, /^--dead measures podwright only/u],
    [{ kubelet: "/nonexistent" }, /^--kubelet: \/nonexistent is no program/u],
    [{ kubelet: "/" }, /^--kubelet: \/ is no program/u],
  ] as const) {
    assert.throws(() => read(given), { message: words });
  }
});

test("the usage names every option of its own", () => {
  for (const name of Object.keys(clusterOptions.options)) {
    assert.match(clusterOptions.usage, new RegExp(`^  --${name} `, "mu"));
  }
});
