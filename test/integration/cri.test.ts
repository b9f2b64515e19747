import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { connectCri } from "../../src/cri/client.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { discoverRuntime } from "../../src/runtime-service/features.ts";
import { needsRoot, testDirectory, type TestDirectory } from "../../src/linux/processes/testing.ts";
import { isCriError, type Cri } from "../../src/ports/cri.ts";
import { patience } from "../support/patience.ts";

const containerd = process.env["PODWRIGHT_TEST_CONTAINERD"] ?? "/usr/bin/containerd";
const skip = needsRoot() || (existsSync(containerd) ? false : `${containerd} is not installed`);

/** A containerd that shares nothing with the machine's: no network configuration, no images, nothing outside the folder. */
class PrivateContainerd implements AsyncDisposable {
  readonly endpoint: string;
  readonly #directory: TestDirectory;
  #process: ChildProcess | undefined;

  constructor(directory: TestDirectory) {
    this.#directory = directory;
    this.endpoint = `unix://${directory.join("containerd.sock")}`;
    writeFileSync(
      directory.join("config.toml"),
      `version = 2
root = "${directory.join("root")}"
state = "${directory.join("state")}"
[grpc]
  address = "${directory.join("containerd.sock")}"
[ttrpc]
  address = "${directory.join("containerd.sock.ttrpc")}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${directory.join("opt")}"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${directory.join("cni-bin")}"
    conf_dir = "${directory.join("cni-conf")}"
`,
    );
  }

  start(): void {
    const child = spawn(containerd, ["--config", this.#directory.join("config.toml")], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    child.stderr.pipe(createWriteStream(this.#directory.join("log"), { flags: "a" }));
    this.#process = child;
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, "exit");
  }

  log(): string {
    return readFileSync(this.#directory.join("log"), "utf8").slice(-2_000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
  }
}

/** Waits until the CRI plugin answers: first there is no socket, then one whose services are still loading. */
async function ready(cri: Cri, runtime: PrivateContainerd): Promise<void> {
  const giveUpMs = performance.now() + 20_000 * patience;
  for (;;) {
    try {
      await cri.runtime.version({}, { timeoutMs: 5_000 * patience });
      return;
    } catch (error) {
      if (!isCriError(error, "Unavailable", "Unimplemented", "Unknown") || performance.now() > giveUpMs) {
        throw new Error(`containerd did not get ready; its log ends:\n${runtime.log()}`, { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** How the event stream ends within a moment: a runtime that has events stays silent, as nothing happens here. */
async function eventStream(cri: Cri): Promise<"open" | "unsupported"> {
  const options = { signal: AbortSignal.timeout(1_000) };
  try {
    for await (const event of cri.runtime.getContainerEvents({}, options)) assert.fail(`event of ${event.containerId}`);
    return assert.fail("the stream ended without an error");
  } catch (error) {
    if (isCriError(error, "Unimplemented")) return "unsupported";
    assert.ok(isCriError(error, "Canceled"), String(error));
    return "open";
  }
}

test(
  "the client works with a real containerd, and reconnects after it was killed",
  { skip, timeout: 90_000 * patience },
  async (t) => {
    using directory = testDirectory();
    await using runtime = new PrivateContainerd(directory);
    using cri = connectCri(runtime.endpoint, systemClock);
    runtime.start();
    await ready(cri, runtime);

    const info = await discoverRuntime(cri);
    t.diagnostic(`containerd ${info.version}, cgroup driver ${info.cgroupDriver}, handlers ${info.handlers.length}`);
    assert.equal(info.name, "containerd");
    assert.equal(info.apiVersion, "v1");
    assert.equal(info.runtimeReady, true);
    assert.equal(info.networkReady, false, "there is no network configuration");

    assert.deepEqual((await cri.runtime.listPodSandbox({})).items, []);
    assert.deepEqual((await cri.runtime.listContainers({})).containers, []);
    assert.deepEqual((await cri.images.listImages({})).images, []);
    const { image } = await cri.images.imageStatus({ image: { image: "localhost/none:1" } });
    assert.equal(image, undefined);
    const { imageFilesystems } = await cri.images.imageFsInfo({});
    assert.ok((imageFilesystems[0]?.timestamp ?? 0n) > 2n ** 53n);

    const missing = cri.runtime.containerStatus({ containerId: "0123456789abcdef" });
    await assert.rejects(missing, {
      name: "CriError",
      code: "NotFound",
      method: "ContainerStatus",
      message: /not found/,
    });

    const events = await eventStream(cri);
    t.diagnostic(`container events: ${events}`);
    // RuntimeConfig is younger than the events: a runtime that has it has both.
    if (info.cgroupDriver !== undefined) assert.equal(events, "open");

    await runtime.stop("SIGKILL");
    await assert.rejects(cri.runtime.version({}), { name: "CriError", code: "Unavailable" });
    runtime.start();
    await ready(cri, runtime);
    assert.equal((await discoverRuntime(cri)).version, info.version);
  },
);
