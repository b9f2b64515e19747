import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { toldLog } from "../../test/support/told-log.ts";
import type { Network } from "../ports/network.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { ApplyRequest } from "../server/local-api.ts";
import { MemoryFiles } from "../sim/files.ts";
import { podView } from "../../test/support/pod-views.ts";
import { BootManifests } from "./boot-manifests.ts";

const directory = "/etc/podwright/manifests";
const manifest = (name: string): string => `
apiVersion: v1
kind: Pod
metadata: { name: ${name} }
spec: { containers: [{ name: app, image: demo }] }
`;
const network: Pick<Network, "httpGet"> = { httpGet: () => Promise.reject(new Error("no network")) };

/** A directory of manifests, over lives of the engine. */
class Scene {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly logged: string[] = [];
  readonly rejected: string[] = [];
  readonly applied: string[][] = [];
  readonly stopped: string[] = [];
  readonly sent: string[] = [];
  refuses = false;
  #end = new AbortController();
  #run = Promise.resolve();
  manifests: BootManifests | undefined;

  async start(): Promise<void> {
    await this.files.makeDirectory("/state", 0o700);
    const apply = async ({
      pods,
    }: ApplyRequest): ReturnType<ConstructorParameters<typeof BootManifests>[0]["localApi"]["apply"]> => {
      if (this.refuses) throw new PodwrightError(ExitCode.badInput, "another node");
      const names = pods.map(({ metadata: { name = "" } }) => name);
      this.applied.push(names);
      return names.map((name) => ({ ...podView({ name }), change: "unchanged" }));
    };
    const stop = async (name: string): Promise<ReturnType<typeof podView>> => {
      this.stopped.push(name);
      if (name.endsWith("/unknown")) throw new PodwrightError(ExitCode.badInput, "no such pod");
      return podView({ name });
    };
    const { clock, files } = this;
    this.manifests = new BootManifests(
      {
        ...{ clock, files, network, log: toldLog(this.logged), localApi: { apply, stop } },
        journal: { record: ({ message }) => this.rejected.push(message) },
        serviceManager: { watchdogMs: undefined, notify: async (lines) => void this.sent.push(lines[0] ?? "") },
      },
      { directory, memory: "/state/boot-pods.json" },
    );
    this.#end = new AbortController();
    this.#run = this.manifests.run(this.#end.signal);
    await this.clock.advance(1000);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await this.#run;
  }

  async put(name: string, text: string): Promise<void> {
    await this.files.makeDirectory(directory, 0o755);
    await this.files.writeAtomic(`${directory}/${name}`, text, 0o600);
    await this.clock.advance(1000);
  }

  async remove(name: string): Promise<void> {
    await this.files.remove(`${directory}/${name}`);
    await this.clock.advance(1000);
  }
}

test("what is put there runs, what is taken away is stopped, and what stays is not asked for again", async () => {
  const scene = new Scene();
  await scene.start();
  await scene.put("web.yaml", manifest("web"));
  await scene.put("notes.txt", "no manifest");
  await scene.put("db.yaml", manifest("db"));
  await scene.clock.advance(300_000);
  assert.deepEqual(scene.applied, [[], ["web"], ["db", "web"]]);
  await scene.remove("web.yaml");
  assert.deepEqual(scene.stopped, ["default/web"]);
  await scene.remove("db.yaml");
  assert.deepEqual(scene.stopped, ["default/web", "default/db"]);
  await scene.stop();
});

test("what was taken away while the engine was down is stopped by its next life", async () => {
  const scene = new Scene();
  await scene.put("web.yaml", manifest("web"));
  await scene.put("unknown.yaml", manifest("unknown"));
  await scene.start();
  await scene.stop();
  await scene.files.remove(`${directory}/web.yaml`);
  await scene.files.remove(`${directory}/unknown.yaml`);
  await scene.start();
  assert.deepEqual(scene.stopped, ["default/unknown", "default/web"]);
  assert.match(scene.logged.at(-1) ?? "", /not there to be stopped .*default\/unknown/u);
  await scene.stop();
});

test("an invalid manifest is reported once, stops no pod, and keeps no other from running", async () => {
  const scene = new Scene();
  await scene.put("web.yaml", manifest("web"));
  await scene.start();
  await scene.put("web.yaml", "kind: Pod\n");
  await scene.put("db.yaml", manifest("db"));
  await scene.clock.advance(300_000);
  assert.deepEqual(scene.applied.at(-1), ["db"]);
  assert.deepEqual(scene.stopped, []);
  assert.equal(scene.rejected.length, scene.applied.length - 1, "once for each look that found something new");
  await scene.put("web.yaml", manifest("web"));
  await scene.remove("web.yaml");
  assert.deepEqual(scene.stopped, ["default/web"]);
  await scene.stop();
});

test("a reload applies everything again, and the service manager hears of its beginning and end", async () => {
  const scene = new Scene();
  await scene.put("web.yaml", manifest("web"));
  await scene.start();
  scene.manifests?.reload();
  await scene.clock.advance(1000);
  assert.deepEqual(scene.applied, [["web"], ["web"]]);
  assert.deepEqual(scene.sent, ["RELOADING=1", "READY=1"]);
  await scene.stop();
});

test("what the engine refuses is logged and tried again", async () => {
  const scene = new Scene();
  scene.refuses = true;
  await scene.put("web.yaml", manifest("web"));
  await scene.start();
  assert.match(scene.logged.at(-1) ?? "", /cannot apply the manifests .*another node/u);
  scene.refuses = false;
  await scene.clock.advance(60_000);
  assert.deepEqual(scene.applied, [["web"]]);
  await scene.stop();
});
