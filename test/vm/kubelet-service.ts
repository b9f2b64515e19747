import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { EngineClient } from "../../src/cli/engine-client.ts";
import { unixTransport } from "../../src/linux/http/unix-client.ts";
import type { RuntimeLayout } from "../../src/private-runtime/layout.ts";
import type { PodView } from "../../src/server/local-api.ts";
import type { Summary } from "../../src/stats/summary-types.ts";
import { type ParsedFamily, parseExposition } from "../support/exposition.ts";
import { engineAnswers, until } from "../support/podwright.ts";
import { podThatIs, podwright, prepareLayout, run } from "./machine.ts";

const manifests = "/etc/kubernetes/manifests";
const configurationFile = "/etc/kubernetes/kubelet.yaml";
const unit = "podwright.service";

/** `podwright kubelet` as a service of systemd, on the machine's containerd, with static pods. */
export class KubeletService {
  readonly #client: EngineClient;
  readonly #layout: RuntimeLayout;

  private constructor(layout: RuntimeLayout) {
    this.#layout = layout;
    this.#client = new EngineClient(unixTransport(layout.engineSocket), layout.stateDirectory);
  }

  /**
   * @param configuration lines of KubeletConfiguration beside the usual
   * @param flags beside the usual
   */
  static async start(configuration: string, flags: readonly string[] = []): Promise<KubeletService> {
    mkdirSync(manifests, { recursive: true });
    const service = new KubeletService(await prepareLayout("/var/lib/kubelet/podwright"));
    service.#configure(configuration);
    // As a service's unit says it; killing the process is left to the tests.
    const properties = ["Restart=always", "RestartSec=100ms", "KillMode=process"];
    run("systemd-run", [
      ...["--quiet", `--unit=${unit}`, ...properties.map((property) => `--property=${property}`)],
      ...[podwright, "kubelet", "--config", configurationFile, "--hostname-override", "node1", ...flags],
    ]);
    await service.answers();
    return service;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.clear();
    run("systemctl", ["stop", unit]);
  }

  #configure(configuration: string): void {
    const text = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: ${manifests}
fileCheckFrequency: 1s
containerRuntimeEndpoint: ${this.#layout.containerd.endpoint}
cgroupDriver: systemd
enableServer: false
${configuration}
`;
    writeFileSync(configurationFile, text);
  }

  async restart(configuration: string): Promise<void> {
    this.#configure(configuration);
    run("systemctl", ["restart", unit]);
    await this.answers();
  }

  /** Waits for the kubelet's socket. */
  async answers(): Promise<void> {
    try {
      await until("podwright to answer", () => engineAnswers(this.#client));
    } catch (error) {
      throw new Error(this.log(), { cause: error });
    }
  }

  /** The kubelet's process. */
  pid(): number {
    return Number(run("systemctl", ["show", "--property=MainPID", "--value", unit]));
  }

  /** The end of what the kubelet logged. */
  log(): string {
    return run("journalctl", ["--unit", unit, "--no-pager", "--output=cat", "--lines=40"]);
  }

  write(name: string, manifest: object): void {
    writeFileSync(join(manifests, `${name}.json`), JSON.stringify(manifest));
  }

  /** How much of an eviction signal is available, in bytes or as a count. */
  async available(signal: string): Promise<number> {
    const { available } = await this.#client.evictionPreview(signal);
    assert.ok(available !== undefined, `${signal} is unknown`);
    return available;
  }

  /** The families of a path of its metrics. */
  async metrics(path: string): Promise<ParsedFamily[]> {
    return parseExposition(await this.#get(path));
  }

  /** Its statistics of pods and their volumes. */
  async summary(): Promise<Summary> {
    return JSON.parse(await this.#get("/stats/summary")) as Summary;
  }

  async #get(path: string): Promise<string> {
    const { status, body } = await unixTransport(this.#layout.engineSocket).request("GET", path);
    if (status !== 200) throw new Error(`${path}: ${status} ${body}`);
    return body;
  }

  /** Takes every manifest away and waits until all pods are gone. */
  async clear(): Promise<void> {
    rmSync(manifests, { recursive: true });
    mkdirSync(manifests);
    await until("all pods to go", async () => (await this.#client.pods()).length === 0);
  }

  /** Waits until the pod matches. */
  async pod(name: string, isSo: (pod: PodView) => boolean = ({ ready }) => ready): Promise<PodView> {
    return podThatIs(this.#client, `${name}-node1`, isSo, () => this.log());
  }
}
