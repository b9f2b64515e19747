import { errorMessage } from "../../base/errors.ts";
import { errnoOf } from "../file-error.ts";
import type { HelperAnswer, HelperCall } from "./storage-helpers.ts";
import { volumeCalls } from "./volume-calls.ts";

/*
 * The process that works in storage that may hang: one call at a time. It is killed when a call takes too long, and ends
 * with the process that started it, by a signal, since an exit waits for threads that hang.
 */

/** The one opened by the last call of `openBeneath`; its path is valid as long as it is open here. */
let opened: AsyncDisposable | undefined;

async function done(call: HelperCall): Promise<unknown> {
  switch (call.what) {
    case "kind":
      return await volumeCalls.kind(...call.with);
    case "create":
      return await volumeCalls.create(...call.with);
    case "groupOf":
      return await volumeCalls.groupOf(...call.with);
    case "identityOf":
      return await volumeCalls.identityOf(...call.with);
    case "isGivenToGroup":
      return await volumeCalls.isGivenToGroup(...call.with);
    case "readBeneath":
      return await volumeCalls.readBeneath(...call.with);
    case "openBeneath": {
      const own = await volumeCalls.openBeneath(...call.with);
      opened = own;
      const { mountSource, isDirectory, device, inode } = own;
      return { mountSource, isDirectory, device, inode };
    }
    case "close":
      await opened?.[Symbol.asyncDispose]();
      opened = undefined;
      return undefined;
  }
}

async function answerTo(call: HelperCall): Promise<HelperAnswer> {
  try {
    return { value: await done(call) };
  } catch (error) {
    return { code: errnoOf(error) ?? "UNKNOWN", message: errorMessage(error) };
  }
}

process.umask(0);
process.on("message", (call: HelperCall) => {
  void answerTo(call).then((answer) => process.send?.(answer));
});
process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
process.send?.({ value: "started" } satisfies HelperAnswer);
