import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, disk, RunClaimsScene } from "../../test/support/run-claims-scene.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import type { ClaimView } from "../server/local-api.ts";
import { decodeManifests } from "../sources/decode.ts";
import type { MachineContext } from "./machine-context.ts";
import { Terminal } from "./terminal.ts";
import { volumesCommand } from "./volumes.ts";

/** Two claims: `data` in its own directory, `other` on a PersistentVolume. */
async function keptClaims(): Promise<readonly ClaimView[]> {
  const kept = await RunClaimsScene.started();
  await kept.take(dataClaim, disk.replace("spec: {", "spec: {claimRef: {name: other}, "));
  await kept.take(dataClaim.replace("name: data", "name: other"));
  return kept.claims.views();
}

async function scene({ canAsk }: { readonly canAsk: boolean }) {
  const views = await keptClaims();
  const [removed, asked]: [string[], string[]] = [[], []];
  let printed = "";
  const stream = { isTTY: true, write: (text: string | Uint8Array) => Boolean((printed += String(text))) };
  const removeClaim = async (namespace: string, name: string) => {
    removed.push(`${namespace}/${name}`);
    return { namespace, name, left: undefined };
  };
  const context: unknown = {
    terminal: new Terminal(stream, stream, { NO_COLOR: "1" }),
    layout: runtimeLayout("/state", systemHashing),
    engine: { claims: async () => views, removeClaim },
  };
  /** @param answers of the person, in order */
  const volumes = async (operands: readonly string[], answers: readonly boolean[] = []): Promise<ExitCode> =>
    await volumesCommand(context as MachineContext, operands, {}, async (_terminal, question) => {
      return canAsk ? (answers[asked.push(question) - 1] ?? false) : undefined;
    });
  return { volumes, views, removed, asked, printed: () => printed };
}

/** The command where an engine has a claim `data` with these properties. */
function listed(claims: readonly Partial<ClaimView>[]): { readonly context: MachineContext; printed: () => string } {
  let text = "";
  const stream = { isTTY: false, write: (part: string | Uint8Array) => Boolean((text += String(part))) };
  const usual = { namespace: "default", name: "data", phase: "Bound", message: "", requested: "1Gi", usedBy: [] };
  const context: unknown = {
    ...{ clock: systemClock, files: systemFiles, processes: systemProcesses },
    layout: runtimeLayout("/state", systemHashing),
    terminal: new Terminal(stream, stream, { NO_COLOR: "1" }),
    engine: { claims: async () => claims.map((claim) => ({ ...usual, ...claim })), freeVolumes: async () => [] },
  };
  return { context: context as MachineContext, printed: () => text };
}

test("inspect prints a claim and its volume as manifests, and knows its name with and without the namespace", async () => {
  const { volumes, views, printed } = await scene({ canAsk: false });
  assert.equal(await volumes(["inspect", "data"]), ExitCode.done);
  const once = printed();
  const { objects, errors } = decodeManifests(new TextEncoder().encode(once), "shown");
  assert.deepEqual(errors, []);
  assert.deepEqual(
    objects.map(({ kind, manifest }) => [kind, manifest.metadata.name]),
    [
      ["PersistentVolumeClaim", "data"],
      ["PersistentVolume", views[0]?.volume],
    ],
  );
  assert.match(once, /^apiVersion: v1\nkind: PersistentVolumeClaim\n/u);
  assert.match(once, /\n---\n[^]*path: \/state\/volumes\/default\/data\n/u);
  await volumes(["inspect", "default/data"]);
  assert.equal(printed(), once.repeat(2));
});

test("inspect needs one claim that exists", async () => {
  const { volumes } = await scene({ canAsk: false });
  await assert.rejects(volumes(["inspect", "none"]), (error: unknown) => {
    assert.ok(error instanceof PodwrightError);
    assert.equal(error.message, 'claim "none" not found in /state');
    return error.remedy === "existing claims: data, other" && error.exitCode === ExitCode.badInput;
  });
  await assert.rejects(volumes(["inspect"]), /missing argument: 'podwright volumes inspect CLAIM'$/u);
  await assert.rejects(volumes(["inspect", "data", "other"]), /too many operands/u);
});

test("rm asks for each claim, says what happens to its data, and removes nothing unless every answer is yes", async () => {
  const refused = await scene({ canAsk: true });
  await assert.rejects(refused.volumes(["rm", "data", "other"], [true, false]), (error: unknown) => {
    assert.ok(error instanceof PodwrightError);
    assert.equal(error.message, "claim other is not removed");
    return error.remedy === undefined && error.exitCode === ExitCode.failed;
  });
  assert.deepEqual(refused.removed, []);
  const agreed = await scene({ canAsk: true });
  assert.equal(await agreed.volumes(["rm", "data", "other"], [true, true]), ExitCode.done);
  assert.deepEqual(agreed.asked, [
    "Remove claim data and everything in /state/volumes/default/data?",
    "Remove claim other; its data stays?",
  ]);
  assert.deepEqual(agreed.removed, ["default/data", "default/other"]);
});

test("rm without a terminal removes nothing, and names the option that does", async () => {
  const { volumes, removed } = await scene({ canAsk: false });
  await assert.rejects(volumes(["rm", "data"]), (error: unknown) => {
    assert.ok(error instanceof PodwrightError);
    assert.equal(error.message, "claim data is not removed");
    return error.remedy === "add --force to remove it without a question";
  });
  assert.deepEqual(removed, []);
});

test("of a claim on a device, how much is used is unknown, and its data cannot be copied", async () => {
  const { context, printed } = listed([{ path: "/dev/null", where: "/dev/null" }]);
  assert.equal(await volumesCommand(context, [], {}), ExitCode.done);
  assert.match(printed(), /^default +data +Bound +1Gi +- +- +\/dev\/null$/mu);
  await assert.rejects(
    volumesCommand(context, ["copy-out", "data", "/none.tar"], {}),
    /^PodwrightError: cannot copy from/u,
  );
});

test("of a claim whose data is at a server, the error says where it can be copied", async () => {
  const { context } = listed([{ path: undefined, where: "/exports/a of server files" }]);
  await assert.rejects(volumesCommand(context, ["copy-out", "data", "/none.tar"], {}), (error: unknown) => {
    assert.ok(error instanceof PodwrightError);
    assert.equal(error.message, "claim data is /exports/a of server files; only directories can be copied");
    return error.remedy === "copy the data in a pod that has the claim";
  });
});
