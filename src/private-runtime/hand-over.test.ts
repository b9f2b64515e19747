import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { LogFields, Logger } from "../ports/log.ts";
import { HeldError, whenFree } from "./hand-over.ts";

const held = (): HeldError => new HeldError("another engine uses /state: pid 42", 42, "use that one");

function recorder(): { readonly log: Logger; readonly said: (LogFields | undefined)[] } {
  const said: (LogFields | undefined)[] = [];
  const quiet = (): void => {};
  const log: Logger = {
    ...{ debug: quiet, warn: quiet, error: quiet },
    info: (_message, fields) => void said.push(fields),
    child: () => log,
  };
  return { log, said };
}

test("a briefly held resource is waited for, with one message", async () => {
  const clock = new ManualClock();
  const { log, said } = recorder();
  let tries = 0;
  const take = async (): Promise<string> => {
    if (++tries < 4) throw held();
    return "taken";
  };
  const taken = whenFree({ clock, log }, "the lock", take, AbortSignal.any([]));
  for (let step = 0; step < 4; step++) await clock.advance(50);
  assert.equal(await taken, "taken");
  assert.deepEqual(said, [
    { what: "the lock", pid: 42, reason: "another engine uses /state: pid 42", forAtMostMs: 5000 },
  ]);
});

test("a resource that stays held is rejected after a timeout, and any other error at once", async () => {
  const clock = new ManualClock();
  const { log } = recorder();
  const refused = whenFree({ clock, log }, "the lock", () => Promise.reject(held()), AbortSignal.any([]));
  const end = assert.rejects(refused, /another engine uses \/state/u);
  for (let step = 0; step < 102; step++) await clock.advance(50);
  await end;
  const broken = whenFree({ clock, log }, "the lock", () => Promise.reject(new Error("EIO")), AbortSignal.any([]));
  await assert.rejects(broken, /EIO/u);
});

test("a wait ends with its signal", async () => {
  const clock = new ManualClock();
  const told = new AbortController();
  const taken = whenFree({ clock, log: recorder().log }, "the lock", () => Promise.reject(held()), told.signal);
  const end = assert.rejects(taken, /received/u);
  await clock.advance(10);
  told.abort(new Error("received SIGTERM"));
  await end;
});
