import assert from "node:assert/strict";
import { test } from "node:test";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { type RuntimeLayout, runtimeLayout } from "../private-runtime/layout.ts";
import { attachCodeOf, exitCodeOf } from "./exec.ts";
import type { RemoteEnd } from "./remote-streams.ts";
import { Terminal } from "./terminal.ts";

const ends: Readonly<Record<RemoteEnd["kind"], RemoteEnd>> = {
  exited: { kind: "exited", code: 0 },
  failed: { kind: "failed", message: "no such container" },
  lost: { kind: "lost" },
};
const openContext = (): { readonly terminal: Terminal; readonly layout: RuntimeLayout } => {
  const terminal = new Terminal({ write: () => true }, { write: () => true }, {});
  return { terminal, layout: runtimeLayout("/srv/pods", systemHashing) };
};
const fails = (work: () => number, message: RegExp): void => {
  assert.throws(
    work,
    (error) => error instanceof PodwrightError && error.exitCode === 1 && message.test(error.message),
  );
};

test("a lost connection is an error of exec and attach, unless nobody reads their output any more", () => {
  const context = openContext();
  fails(() => exitCodeOf(context, ends.lost), /^the connection ended before the command did$/u);
  fails(() => attachCodeOf(context, ends.lost), /^the connection to the container was lost$/u);
  assert.throws(() => exitCodeOf(context, ends.lost), { remedy: /^'podwright ps --state-dir \/srv\/pods' shows/u });
  context.terminal.close();
  for (const codeOf of [exitCodeOf, attachCodeOf]) assert.equal(codeOf(context, ends.lost), ExitCode.done);
});

test("exec ends with the exit code of its command, and attach without one", () => {
  const context = openContext();
  assert.equal(exitCodeOf(context, { kind: "exited", code: 3 }), 3);
  assert.equal(attachCodeOf(context, ends.exited), ExitCode.done);
  for (const codeOf of [exitCodeOf, attachCodeOf]) fails(() => codeOf(context, ends.failed), /^no such container$/u);
});
