import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { toldLog } from "../../test/support/told-log.ts";
import type { Network } from "../ports/network.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { ApplyRequest, Health } from "../server/local-api.ts";
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

const healthy: Health = {
  ...{ healthy: true, version: "1", pid: 1, runtime: "r", runtimeEndpoint: "unix:///r", startedAt: 0, journalSeq: 0 },
  ...{ knowsAllPods: true, checks: [] },
};
const memory = "/state/boot-pods.json";

/** A directory of manifests, across restarts of the engine. */
class Scene {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly logged: string[] = [];
  readonly rejected: string[] = [];
  readonly applied: string[][] = [];
  /** Whether each request asked to run ended pods again. */
  readonly again: (boolean | undefined)[] = [];
  readonly claims: string[] = [];
  readonly stopped: string[] = [];
  readonly sent: string[] = [];
  refuses = false;
  refusesVolumes = false;
  /** The machine does not have what pods named csi… need. */
  lacks = false;
  /** Whether the engine has listed all pods of earlier runs. */
  knowsAllPods = true;
  failsToStop = false;
  #end = new AbortController();
  #run = Promise.resolve();
  manifests: BootManifests | undefined;

  async start(): Promise<void> {
    await this.files.makeDirectory("/state", 0o700);
    const apply = async ({
      pods,
      storage,
      runsAgain,
    }: ApplyRequest): ReturnType<ConstructorParameters<typeof BootManifests>[0]["localApi"]["apply"]> => {
      this.again.push(runsAgain);
      if (this.refuses) throw new PodwrightError(ExitCode.badInput, "another node");
      if (pods.some(({ metadata }) => metadata.name === "elsewhere")) {
        const problem = { object: "Pod default/elsewhere", path: ["spec", "nodeName"], detail: "is another node" };
        throw new PodwrightError(ExitCode.badInput, "rejected", { problems: [problem] });
      }
      if (this.refusesVolumes && storage?.some(({ kind }) => kind === "PersistentVolume")) {
        const problem = { object: "PersistentVolume disk", path: ["spec"], detail: "is immutable" };
        throw new PodwrightError(ExitCode.badInput, "rejected", { problems: [problem] });
      }
      const needy = pods.filter(({ metadata: { name = "" } }) => this.lacks && name.startsWith("csi"));
      if (needy.length > 0) {
        const detail = "/var/lib/kubelet belongs to another node agent";
        const problems = needy.map(({ metadata: { name } }) => ({ object: `Pod default/${name}`, path: [], detail }));
        throw new PodwrightError(ExitCode.environment, detail, { problems, remedy: "stop that agent" });
      }
      const names = pods.map(({ metadata: { name = "" } }) => name);
      this.applied.push(names);
      this.claims.push(...(storage ?? []).map(({ metadata }) => metadata.name ?? ""));
      return names.map((name) => ({ ...podView({ name }), change: "unchanged" }));
    };
    const stop = async (name: string): Promise<ReturnType<typeof podView>> => {
      this.stopped.push(name);
      if (this.failsToStop) throw new Error("disk full");
      if (name.endsWith("/unknown")) throw new PodwrightError(ExitCode.badInput, "no such pod");
      return podView({ name });
    };
    const { clock, files } = this;
    const health = (): Health => ({ ...healthy, knowsAllPods: this.knowsAllPods });
    this.manifests = new BootManifests(
      {
        ...{ clock, files, network, log: toldLog(this.logged), localApi: { apply, stop, health } },
        journal: { record: ({ message }) => this.rejected.push(message) },
        serviceManager: {
          watchdogMs: undefined,
          monotonicMicroseconds: () => 1_234_567n,
          notify: async (lines) => void this.sent.push(lines.join(" ")),
        },
      },
      { directory, memory },
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

test("pods of new manifests start, pods of removed ones stop, and unchanged ones are not applied again", async () => {
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

test("pods whose manifests were removed while the engine was down stop at its next start", async () => {
  const scene = new Scene();
  await scene.put("web.yaml", manifest("web"));
  await scene.put("unknown.yaml", manifest("unknown"));
  await scene.start();
  await scene.stop();
  await scene.files.remove(`${directory}/web.yaml`);
  await scene.files.remove(`${directory}/unknown.yaml`);
  await scene.start();
  assert.deepEqual(scene.stopped, ["default/unknown", "default/web"]);
  assert.match(scene.logged.at(-1) ?? "", /has already been stopped .*default\/unknown/u);
  await scene.stop();
});

test("claims are given with the pods, and stay when their manifest is removed", async () => {
  const scene = new Scene();
  await scene.start();
  const claim = `---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`;
  await scene.put("web.yaml", manifest("web") + claim);
  assert.deepEqual(scene.claims, ["data"]);
  await scene.remove("web.yaml");
  assert.deepEqual(scene.stopped, ["default/web"]);
  await scene.stop();
});

test("an error in a volume defers the claims, but no pod without a claim", async () => {
  const scene = new Scene();
  await scene.start();
  const claim = `---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`;
  const volume = (source: string): string => `---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk},
  spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, ${source}}}
`;
  await scene.put("web.yaml", manifest("web") + claim + volume("hostPth: {path: /srv/data}"));
  assert.deepEqual([scene.applied.at(-1), scene.claims], [["web"], []]);
  assert.equal(
    scene.rejected.at(-1),
    "no claim or volume of the manifests is applied until these errors are corrected",
  );
  await scene.put("web.yaml", manifest("web") + claim + volume("hostPath: {path: /srv/data}"));
  assert.deepEqual(scene.claims, ["data", "disk"]);
  await scene.stop();
});

test("a volume that the engine rejects defers the claims in the same request", async () => {
  const scene = new Scene();
  scene.refusesVolumes = true;
  await scene.start();
  const storage = `---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk},
  spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /srv/data}}}
`;
  await scene.put("web.yaml", manifest("web") + storage);
  assert.deepEqual([scene.applied.at(-1), scene.claims], [["web"], []]);
  assert.match(scene.rejected.join("; "), /is immutable; no claim or volume of the manifests is applied/u);
  await scene.stop();
});

test("the stop of a pod that the engine does not know yet, or cannot stop, is retried", async () => {
  const scene = new Scene();
  await scene.put("unknown.yaml", manifest("unknown"));
  await scene.put("web.yaml", manifest("web"));
  await scene.start();
  await scene.stop();
  await scene.files.remove(`${directory}/unknown.yaml`);
  await scene.files.remove(`${directory}/web.yaml`);
  scene.knowsAllPods = false;
  scene.failsToStop = true;
  await scene.start();
  assert.deepEqual(scene.stopped, ["default/unknown", "default/web"]);
  assert.match(scene.logged.at(-1) ?? "", /^error: cannot stop the pod of a removed manifest .*disk full/u);
  await scene.stop();
  scene.failsToStop = false;
  scene.stopped.length = 0;
  await scene.start();
  await scene.clock.advance(5000);
  assert.deepEqual(scene.stopped, ["default/unknown", "default/web", "default/unknown"], "web is stopped");
  scene.knowsAllPods = true;
  await scene.clock.advance(60_000);
  assert.equal(scene.stopped.length, 4);
  assert.deepEqual(scene.applied.slice(-1), [[]], "without applying the manifests again");
  await scene.stop();
});

test("a damaged record of pods is set aside, and reconciling continues", async () => {
  for (const damaged of ["[", '{"a":1}', '["default/web",1]', "\0"]) {
    const scene = new Scene();
    await scene.put("web.yaml", manifest("web"));
    await scene.start();
    await scene.stop();
    await scene.files.write(memory, damaged, 0o600);
    await scene.start();
    assert.match(scene.logged.at(-1) ?? "", /^warn: cannot read which pods came from manifests; renaming the record/u);
    assert.equal(new TextDecoder().decode(await scene.files.read(`${memory}.bad`, 100)), damaged);
    await scene.remove("web.yaml");
    assert.deepEqual(scene.stopped, ["default/web"], damaged);
    await scene.stop();
  }
});

test("an invalid manifest is reported once, stops no pod, and delays no other", async () => {
  const scene = new Scene();
  await scene.put("web.yaml", manifest("web"));
  await scene.start();
  await scene.put("web.yaml", "kind: Pod\n");
  await scene.put("db.yaml", manifest("db"));
  await scene.clock.advance(300_000);
  assert.deepEqual(scene.applied.at(-1), ["db"]);
  assert.deepEqual(scene.stopped, []);
  assert.equal(scene.rejected.length, scene.applied.length - 1, "once for each changed listing");
  await scene.put("web.yaml", manifest("web"));
  await scene.remove("web.yaml");
  assert.deepEqual(scene.stopped, ["default/web"]);
  await scene.stop();
});

test("a reload applies everything again, and notifies the service manager of its start and end", async () => {
  const scene = new Scene();
  await scene.put("web.yaml", manifest("web"));
  await scene.start();
  scene.manifests?.reload();
  await scene.clock.advance(1000);
  assert.deepEqual(scene.applied, [["web"], ["web"]]);
  assert.deepEqual(scene.sent, ["RELOADING=1 MONOTONIC_USEC=1234567", "READY=1"]);
  await scene.stop();
});

test("a directory that cannot be watched is polled, and the log says so once", async () => {
  const scene = new Scene();
  const files = scene.files;
  const watch = files.watch.bind(files);
  files.watch = () => {
    throw new Error("no inotify");
  };
  await scene.start();
  await scene.put("web.yaml", manifest("web"));
  assert.deepEqual(scene.applied, [[]]);
  await scene.clock.advance(120_000);
  assert.deepEqual(scene.applied, [[], ["web"]]);
  assert.deepEqual(scene.logged, [
    `warn: cannot watch the manifests; polling instead {"directory":"${directory}","periodMs":60000,"error":"no inotify"}`,
  ]);
  files.watch = watch;
  await scene.clock.advance(60_000);
  await scene.put("db.yaml", manifest("db"));
  assert.deepEqual(scene.applied.at(-1), ["db", "web"]);
  await scene.stop();
});

test("a pod that the engine rejects is reported with its file and line, stops no pod, and delays no other", async () => {
  const scene = new Scene();
  await scene.put("web.yaml", manifest("web"));
  await scene.put("gone.yaml", manifest("gone"));
  await scene.start();
  await scene.put("elsewhere.yaml", manifest("elsewhere").replace("spec: {", "spec: { nodeName: other,"));
  await scene.put("db.yaml", manifest("db"));
  assert.deepEqual(scene.applied.at(-1), ["db", "gone", "web"]);
  assert.match(scene.rejected.at(-1) ?? "", /elsewhere\.yaml:5:\d+: spec\.nodeName: is another node$/u);
  await scene.remove("gone.yaml");
  assert.deepEqual(scene.stopped, []);
  await scene.remove("elsewhere.yaml");
  assert.deepEqual(scene.stopped, ["default/gone"]);
  await scene.stop();
});

test("a rejected request is logged and retried", async () => {
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

test("pods that have run to their end run again at the next boot, and not at a restart of the engine", async () => {
  const scene = new Scene();
  const bootIs = async (id: string): Promise<void> => {
    await scene.files.makeDirectory("/proc/sys/kernel/random", 0o755);
    await scene.files.write("/proc/sys/kernel/random/boot_id", `${id}\n`, 0o444);
  };
  await bootIs("first");
  await scene.put("job.yaml", manifest("job"));
  await scene.start();
  await scene.put("web.yaml", manifest("web"));
  await scene.stop();
  await scene.start();
  assert.deepEqual(scene.again, [false, false, false]);
  await scene.stop();
  await bootIs("second");
  await scene.start();
  await scene.put("other.yaml", manifest("other"));
  assert.deepEqual(scene.again.slice(3), [true, false]);
  await scene.stop();
});

test("pods that need what the machine lacks delay no other, are reported once, and are applied once it has it", async () => {
  const scene = new Scene();
  scene.lacks = true;
  await scene.put("csi-web.yaml", manifest("csi-web"));
  await scene.put("web.yaml", manifest("web"));
  await scene.start();
  assert.deepEqual(scene.applied, [["web"]]);
  await scene.put("db.yaml", manifest("db"));
  assert.deepEqual(scene.applied.at(-1), ["db", "web"]);
  await scene.clock.advance(300_000);
  assert.equal(scene.applied.length, 2, "the others are not applied again: one may have been stopped meanwhile");
  const [told = ""] = scene.rejected;
  assert.match(
    told,
    /csi-web\.yaml:\d+.*: \/var\/lib\/kubelet belongs to another node agent; the pod is applied once/u,
  );
  assert.deepEqual(scene.rejected, [told]);
  assert.deepEqual(scene.manifests?.findings(), [
    { name: "manifests", ok: true, warning: true, detail: told, remedy: "stop that agent" },
  ]);
  await scene.remove("web.yaml");
  assert.deepEqual(scene.stopped, ["default/web"], "nothing is wrong with the manifests");
  scene.lacks = false;
  await scene.clock.advance(60_000);
  assert.deepEqual(scene.applied.at(-1), ["csi-web"]);
  assert.deepEqual(scene.manifests?.findings(), []);
  assert.deepEqual(scene.rejected.slice(1), ["Pod default/csi-web waits no longer"]);
  await scene.remove("csi-web.yaml");
  assert.deepEqual(scene.stopped, ["default/web", "default/csi-web"]);
  await scene.stop();
});

test("a pod that was applied before, and cannot be now, keeps running while its manifest is there", async () => {
  const scene = new Scene();
  await scene.put("csi-web.yaml", manifest("csi-web"));
  await scene.start();
  scene.lacks = true;
  await scene.put("db.yaml", manifest("db"));
  assert.deepEqual([scene.applied.at(-1), scene.stopped], [["db"], []]);
  await scene.remove("csi-web.yaml");
  assert.deepEqual(scene.stopped, ["default/csi-web"]);
  assert.deepEqual(scene.manifests?.findings(), []);
  await scene.stop();
});

test("manifests that cannot be applied at all are a finding until they are", async () => {
  const scene = new Scene();
  scene.refuses = true;
  await scene.put("web.yaml", manifest("web"));
  await scene.start();
  assert.deepEqual(scene.manifests?.findings(), [
    { name: "manifests", ok: true, warning: true, detail: "cannot apply the manifests: another node" },
  ]);
  scene.refuses = false;
  await scene.clock.advance(60_000);
  assert.deepEqual(scene.manifests?.findings(), []);
  await scene.stop();
});
