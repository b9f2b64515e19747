import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { FileError } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import { MemoryFiles } from "../sim/files.ts";
import { type AskedSettings, type EngineSettings, KeptSettings, runtimeOfPods } from "./kept-settings.ts";

const layout = runtimeLayout("/state", systemHashing);
const own = layout.containerd.endpoint;
const system = "unix:///run/containerd/containerd.sock";
const path = layout.engineSettings;

class Scene {
  readonly files = new MemoryFiles(new ManualClock());
  readonly warnings: string[] = [];
  readonly #log: Logger = {
    debug: () => {},
    info: () => {},
    warn: (message) => void this.warnings.push(message),
    error: () => assert.fail("no error is expected"),
    child: () => this.#log,
  };

  static async open(): Promise<Scene> {
    const scene = new Scene();
    await scene.files.makeDirectory("/state", 0o711);
    return scene;
  }

  get kept(): KeptSettings {
    return new KeptSettings(this.files, this.#log, layout);
  }

  /** What an engine that is started with this does; it then ends without notice. */
  async start(asked: AskedSettings): Promise<EngineSettings> {
    const settings = await this.kept.choose(asked);
    await this.kept.keep(settings);
    return settings;
  }

  async storePod(): Promise<void> {
    await this.files.makeDirectory(layout.manifests, 0o700);
    await this.files.write(`${layout.manifests}/pod_default_web.json`, "{}", 0o600);
  }
}

const otherRuntime = (error: unknown): boolean => {
  assert.ok(error instanceof PodwrightError);
  assert.equal(error.exitCode, ExitCode.badInput);
  assert.match(error.message, /^the pods of \/state run in .*, not in unix:\/\/\//);
  assert.match(error.remedy ?? "", /omit --runtime-endpoint/);
  return true;
};

test("evictions that one engine was asked for hold for the next one, until they are turned off or forgotten", async () => {
  const scene = await Scene.open();
  const evict = async (asked: AskedSettings): Promise<boolean> => (await scene.start(asked)).evict;
  assert.equal(await evict({}), false);
  assert.equal(await evict({ evict: true }), true);
  assert.equal(await evict({}), true);
  assert.equal(await evict({ evict: false }), false);
  assert.equal(await evict({}), false);
  await scene.start({ evict: true });
  await scene.kept.forget();
  await scene.kept.forget();
  assert.equal(await evict({}), false);
  assert.deepEqual(scene.warnings, []);
});

test("pods stay in the runtime that their engine was asked for, until they are gone", async () => {
  const scene = await Scene.open();
  await scene.start({ runtimeEndpoint: system });
  await scene.storePod();
  assert.equal(await runtimeOfPods(scene.files, layout), system);
  assert.deepEqual(await scene.start({ evict: true }), { evict: true, runtimeEndpoint: system });
  assert.deepEqual(await scene.start({}), { evict: true, runtimeEndpoint: system });
  await assert.rejects(scene.start({ runtimeEndpoint: own }), otherRuntime);
  await assert.rejects(scene.start({ runtimeEndpoint: "unix:///run/crio/crio.sock" }), otherRuntime);
  await scene.kept.forget();
  assert.equal((await scene.start({})).runtimeEndpoint, undefined);
});

test("pods in podwright's own containerd stay there", async () => {
  const scene = await Scene.open();
  await scene.start({});
  await scene.storePod();
  assert.equal(await runtimeOfPods(scene.files, layout), own);
  await assert.rejects(scene.start({ runtimeEndpoint: system }), otherRuntime);
  assert.equal((await scene.start({ runtimeEndpoint: own })).runtimeEndpoint, own);
  assert.equal((await scene.start({})).runtimeEndpoint, undefined, "then its engine starts that containerd, too");
});

test("a pod whose manifest is gone, but which has not stopped, still has its runtime", async () => {
  const scene = await Scene.open();
  await scene.start({ runtimeEndpoint: system });
  await scene.files.makeDirectory(`${layout.kubeletRoot}/pods/9f1c`, 0o750);
  assert.equal((await scene.start({})).runtimeEndpoint, system);
});

test("without pods any runtime may be asked for, and none is kept", async () => {
  const scene = await Scene.open();
  await scene.start({ runtimeEndpoint: system });
  assert.equal((await scene.start({ runtimeEndpoint: "unix:///other.sock" })).runtimeEndpoint, "unix:///other.sock");
  assert.equal((await scene.start({})).runtimeEndpoint, undefined);
  await scene.storePod();
  assert.equal(await runtimeOfPods(scene.files, layout), own);
});

test("a full disk or a damaged record prevents no start", async () => {
  const scene = await Scene.open();
  await scene.storePod();
  await scene.files.write(path, "{", 0o600);
  scene.files.writeAtomic = async () => Promise.reject(new FileError("ENOSPC", path, "no space left"));
  assert.deepEqual(await scene.start({ evict: true, runtimeEndpoint: system }), {
    evict: true,
    runtimeEndpoint: system,
  });
  assert.deepEqual(scene.warnings, [
    "cannot read what the engine before was asked for",
    "cannot record what the next engine needs to know",
  ]);
});

test("on a full disk no record stays that names another runtime", async () => {
  const scene = await Scene.open();
  await scene.start({ runtimeEndpoint: system });
  scene.files.writeAtomic = async () => Promise.reject(new FileError("ENOSPC", path, "no space left"));
  await scene.start({});
  await scene.storePod();
  assert.equal(await runtimeOfPods(scene.files, layout), undefined);
});
