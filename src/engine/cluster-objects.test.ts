import assert from "node:assert/strict";
import { test } from "node:test";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { apiPod } from "../../test/support/status-world.ts";
import { WatchNews } from "../api-client/watch-news.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemRandom } from "../linux/processes/random.ts";
import type { PodUpdate } from "../sources/source.ts";
import { ClusterObjects } from "./cluster-objects.ts";

const api = apiPod("a");
const volumes = [{ name: "own", configMap: { name: "settings" } }];
const pod = { ...api, spec: { ...api.spec, volumes } };
const cause = { code: "Resync", message: "a test" } as const;

test("objects of a pod are fetched with the pod, and not again when it changes after its end", async () => {
  const kube = new ScriptedKube();
  const { clock } = kube;
  const objects = new ClusterObjects({
    ...{ clock, client: kube.client(), random: systemRandom, journal: new MemoryRecorder(), log: silentLog },
    ...{ news: new WatchNews(clock, silentLog), files: systemFiles, servicesFile: "/nowhere/services.json" },
  });
  const want = (op: PodUpdate["op"], hadEnded = false): void =>
    objects.wanted({ op, source: "api", pod, cause }, hadEnded);
  want("add", true);
  want("update", false);
  assert.ok(await kube.isQuiet(), "it had ended before");
  want("add");
  assert.match((await kube.next()).request.path, /configmaps.*metadata.name%3Dsettings/);
  want("update");
  objects.released(pod.metadata.uid);
  want("update");
  assert.ok(await kube.isQuiet());
});
