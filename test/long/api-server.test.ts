import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Json } from "../apiserver/objects.ts";
import { TestApiServer } from "../apiserver/server.ts";
import { differences } from "../support/api-suite/differences.ts";
import { Scene, type Stage } from "../support/api-suite/scene.ts";
import { play } from "../support/api-suite/suite.ts";
import { bootstrapToken, ControlPlane, noControlPlane } from "../support/control-plane.ts";
import { noKubectl } from "../support/kubectl.ts";
import { letNodesJoin } from "../support/member.ts";

/** Plays the suite; gives every step's answer. */
async function answers(stage: Omit<Stage, "bootstrapToken">): Promise<ReadonlyMap<string, Json>> {
  using scene = new Scene({ url: stage.url, authority: stage.authority, bootstrapToken });
  await play(scene);
  return scene.steps;
}

const joiner = { name: "kubelet-bootstrap", uid: "10001", groups: ["system:bootstrappers"] };

test("the API server for tests responds like a real one", { skip: noControlPlane || noKubectl }, async () => {
  const path = await mkdtemp(join(tmpdir(), "api-server-"));
  await using cleanUps = new AsyncDisposableStack();
  cleanUps.defer(async () => rm(path, { recursive: true, force: true }));
  await using server = await TestApiServer.start({ schedules: false, tokens: { [bootstrapToken]: joiner } });
  await using plane = await ControlPlane.start(path, { schedules: false });
  await letNodesJoin(plane.kubectl());
  // What came before the suite is too old to watch from, as it is for the real one, which was started since.
  server.registry.store.compact();
  const [ours, real] = await Promise.all([answers(server), answers(plane)]);
  assert.ok(real.size > 250, `${real.size} steps`);
  assert.deepEqual(differences(ours, real).join("\n\n"), "");
});
