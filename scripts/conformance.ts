/**
 * Runs Kubernetes' own end-to-end tests against a node of podwright in Kubernetes' own control plane; `--help` lists the
 * options. Exit code 0 if all pass, 1 if not, 2 for invalid options, 3 if a program is missing.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { controlPlaneProgram, noControlPlane } from "../test/support/control-plane.ts";
import { importImages } from "../test/support/images.ts";
import { type Member, withMember } from "../test/support/member.ts";
import { type CommandOptions, helpText, readOptions, runCommand, UsageError, wholeNumber } from "./command-options.ts";

const name = "npm run conformance --";
const usualFocus = String.raw`\[NodeConformance\]`;
/** What needs the node for itself, more time, cloud providers, or gates that are off. */
const usualSkip = String.raw`\[Serial\]|\[Slow\]|\[Disruptive\]|\[Flaky\]|\[Alpha\]|\[Feature:`;
const usualProcs = 3;
/** The tests ask the kubelet at this one, whatever its Node says. */
const usualPort = "10250";

const taken = {
  focus: { value: "REGEX", help: `tests whose name matches (default: ${usualFocus})` },
  skip: { value: "REGEX", help: `but not these (default: ${usualSkip})` },
  procs: { value: "N", help: `number of tests at a time (default ${usualProcs})` },
  images: { value: "FILE", help: "an archive with the tests' images; the runtime pulls those that are not in it" },
  gates: { value: "LIST", help: "feature gates of the kubelet, Name=true,…" },
} satisfies CommandOptions;
type Options = ReturnType<typeof readOptions<keyof typeof taken>>;

const helpLines = helpText(
  name,
  "Kubernetes' own end-to-end tests against a node of podwright. PODWRIGHT_CONTROL_PLANE is a directory with etcd,\n" +
    "kube-apiserver, kube-controller-manager and kube-scheduler, and with e2e.test and ginkgo of the same release.",
  taken,
);

function startTests({ node: { podwright } }: Member, options: Options, procs: number): ChildProcess {
  const ginkgo = [
    ...["run", "--no-color", "--silence-skips", `--procs=${procs}`],
    ...[`--focus=${options.get("focus") ?? usualFocus}`, `--skip=${options.get("skip") ?? usualSkip}`],
  ];
  const tests = [
    ...[`--kubeconfig=${join(podwright.path("plane"), "admin.kubeconfig")}`, "--provider=local", "--num-nodes=1"],
    ...["--allowed-not-ready-nodes=-1", "--node-os-distro=debian", "--dns-domain=cluster.local", "--disable-log-dump"],
  ];
  const words = [...ginkgo, controlPlaneProgram("e2e.test"), "--", ...tests];
  return spawn(controlPlaneProgram("ginkgo"), words, { stdio: "inherit" });
}

function settings(options: Options): string {
  const gates = (options.get("gates") ?? "").split(",").filter((gate) => gate !== "");
  const lines = gates.map((gate) => gate.replace("=", ": "));
  const serving = "rotateCertificates: true\nserverTLSBootstrap: true\n";
  return lines.length === 0 ? serving : `${serving}featureGates: { ${lines.join(", ")} }\n`;
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(taken, args);
  if (options.has("help")) {
    console.log(helpLines);
    return 0;
  }
  const procs = wholeNumber(options, "procs", 64) ?? usualProcs;
  const archive = options.get("images");
  if (archive !== undefined && !existsSync(archive)) throw new UsageError(`there is no file ${archive}`);
  const missing = (["e2e.test", "ginkgo"] as const).filter((each) => !existsSync(controlPlaneProgram(each)));
  if (noControlPlane !== false || missing.length > 0) {
    console.error(noControlPlane || `PODWRIGHT_CONTROL_PLANE has no ${missing.join(", no ")}`);
    return 3;
  }
  let exitCode = 1;
  await withMember(settings(options), async (member) => {
    if (archive !== undefined) await importImages(member.node.podwright, resolve(archive));
    const kubelet = member.node.startKubelet(...member.flags, "--port", usualPort);
    await member.shows(/^node1 +Ready/m, "get", "nodes");
    await member.approveServing();
    const [code] = (await once(startTests(member, options, procs), "exit")) as [number | null];
    exitCode = code === 0 ? 0 : 1;
    kubelet.child.kill("SIGTERM");
    await kubelet.ended;
  });
  return exitCode;
}

await runCommand(name, main);
