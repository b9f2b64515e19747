/**
 * The cost of the node page: the engine's CPU time with no page open, with one and with four, and the bytes sent to
 * each.
 *
 * page.ts [--pods 100] [--rounds 1] [--containerd PATH] [--json]
 *
 * A quarter of the pods has a readiness probe each second, so that there are always changes.
 */
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { PodManifest } from "../src/api/pod.ts";
import { BenchNode, podManifest } from "./support/node.ts";
import { benchOptions } from "./support/options.ts";
import { printReport, progress } from "./support/report.ts";
import { median } from "./support/statistics.ts";

const windowMs = 40_000;
/** From the last change to the first measurement, and from a page's opening to its own. */
const calmMs = 10_000;
const many = 4;
const goals = { cpuPercent: 4, kibibytes: 24 } as const;

function probedManifest(name: string): PodManifest {
  const plain = podManifest(name);
  const serve = "trap 'exit 0' TERM; touch /tmp/ready; httpd -p 80 -h /tmp; sleep 1000000 & wait";
  const readinessProbe = { httpGet: { path: "/ready", port: 80 }, periodSeconds: 1 };
  const containers = plain.spec.containers.map((app) => ({
    ...app,
    command: ["/bin/sh", "-c", serve],
    readinessProbe,
  }));
  return { ...plain, spec: { ...plain.spec, containers } };
}

/** An open page, as in a browser. */
class Page implements Disposable {
  readonly #response: IncomingMessage;
  bytes = 0;
  events = 0;

  private constructor(response: IncomingMessage) {
    this.#response = response;
    response.on("data", (chunk: Buffer) => {
      this.bytes += chunk.length;
      this.events += chunk.toString("latin1").split("\nevent: ").length - 1;
    });
    response.on("error", () => {});
  }

  static async open(node: BenchNode): Promise<Page> {
    const outgoing = request({ socketPath: node.layout.engineSocket, path: "/ui/api/events", agent: false });
    outgoing.end();
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    if (response.statusCode !== 200) throw new Error(`/ui/api/events: ${response.statusCode}`);
    return new Page(response);
  }

  [Symbol.dispose](): void {
    this.#response.destroy();
  }
}

interface Cost {
  readonly cpuPercent: number;
  /** For each page, per second. */
  readonly kibibytes: number;
  readonly helloKibibytes: number;
}

async function measure(node: BenchNode, pages: number): Promise<Cost> {
  const open = await Promise.all(Array.from({ length: pages }, () => Page.open(node)));
  try {
    await sleep(calmMs);
    const hello = open[0]?.bytes ?? 0;
    const before = await node.usage();
    const sent = open.map(({ bytes }) => bytes);
    const began = performance.now();
    await sleep(windowMs);
    const seconds = (performance.now() - began) / 1000;
    const { cpuMs } = await node.usage();
    const bytes = open.reduce((sum, page, index) => sum + page.bytes - (sent[index] ?? 0), 0);
    return {
      cpuPercent: (cpuMs - before.cpuMs) / seconds / 10,
      kibibytes: pages === 0 ? 0 : bytes / pages / seconds / 1024,
      helloKibibytes: hello / 1024,
    };
  } finally {
    for (const page of open) page[Symbol.dispose]();
  }
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 1, pods: [100] });
  const [count = 100] = options.pods;
  await using node = await BenchNode.start(options);
  const names = Array.from({ length: count }, (_, index) => `page-${index}`);
  await node.apply(names.map((name, index) => (index % 4 === 0 ? probedManifest(name) : podManifest(name))));
  await node.waitForReady(...names);
  progress(`${count} pods are ready`);
  await sleep(calmMs);
  const measured: Record<"none" | "one" | "many", Cost>[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const of = { none: await measure(node, 0), one: await measure(node, 1), many: await measure(node, many) };
    measured.push(of);
    progress(
      `round ${round + 1}: ${of.none.cpuPercent.toFixed(1)} %, with a page ${of.one.cpuPercent.toFixed(1)} %, ` +
        `with ${many} ${of.many.cpuPercent.toFixed(1)} %; ${of.one.kibibytes.toFixed(1)} KiB/s`,
    );
  }
  const middle = (which: "none" | "one" | "many", field: keyof Cost): number =>
    median(measured.map((each) => each[which][field]));
  const row = (name: string, which: "none" | "one" | "many"): string[] => {
    return [name, `${middle(which, "cpuPercent").toFixed(1)} %`, `${middle(which, "kibibytes").toFixed(1)} KiB/s`];
  };
  printReport(
    {
      bench: "page",
      setting: [
        `${node.runtime}; ${count} pods, a quarter probed each second; ${windowMs / 1000} s each, load ${loadavg()[0]?.toFixed(0)}`,
        `the first event has ${middle("one", "helloKibibytes").toFixed(0)} KiB; podwright ${options.program}, ${(await node.usage()).peakRssMiB.toFixed(0)} MiB at its peak`,
      ],
      columns: ["open pages", "CPU, of a core", "to each page"],
      rows: [row("none", "none"), row("one", "one"), row(`${many}`, "many")],
      goals: [
        {
          name: "CPU of one page",
          value: middle("one", "cpuPercent") - middle("none", "cpuPercent"),
          atMost: goals.cpuPercent,
          unit: "%",
        },
        { name: "to one page", value: middle("one", "kibibytes"), atMost: goals.kibibytes, unit: "KiB/s" },
      ],
      measurements: measured,
    },
    options.json,
  );
}

await main();
