import assert from "node:assert/strict";
import { test } from "node:test";
import { configurationFlags } from "./flag-table.ts";
import { flagLayer, kubeletHelp, parseKubeletFlags, readKubeletFlags } from "./flags.ts";
import { fieldTable } from "./field-table.ts";
import { nodeFlags } from "./node-flag-table.ts";
import { removedFlag } from "./removed-flags.ts";
import { kubeletConfigurationSchema } from "./schema.ts";

const fieldsOf = (...words: readonly string[]): object => flagLayer(parseKubeletFlags(words).fields);

test("flags are parsed like pflag's", () => {
  assert.deepEqual(
    fieldsOf("--port=1", "--port", "2", "--healthz_port", "3", "-v4", "--fail-swap-on", "--enable-server=F"),
    {
      port: 2,
      healthzPort: 3,
      logging: { verbosity: 4 },
      failSwapOn: true,
      enableServer: false,
    },
  );
  assert.deepEqual(fieldsOf("-v", "2"), { logging: { verbosity: 2 } });
  assert.deepEqual(fieldsOf("-v=6"), { logging: { verbosity: 6 } });
});

test("lists and maps add up over repeated flags", () => {
  const words = [
    ...["--cluster-dns=10.0.0.1,10.0.0.2", "--cluster-dns=10.0.0.3"],
    ...["--eviction-hard=memory.available<1Gi,nodefs.available<5%"],
    ...["--system-reserved=cpu=1,memory=1Gi", "--system-reserved=pid=1000"],
    ...["--cpu-manager-policy-options=full-pcpus-only=true,x"],
    ...["--manifest-url-header=a:1,b:2,a:3"],
    ...["--feature-gates=A=true,B=false"],
    ...["--register-with-taints=k=v:NoSchedule,x:NoExecute"],
    ...["--reserved-memory=0:memory=1Gi,hugepages-2Mi=2Gi;1:memory=2Gi"],
    ...["--vmodule=pod*=3,x=2"],
  ];
  assert.deepEqual(fieldsOf(...words), {
    clusterDNS: ["10.0.0.1", "10.0.0.2", "10.0.0.3"],
    evictionHard: { "memory.available": "1Gi", "nodefs.available": "5%" },
    systemReserved: { cpu: "1", memory: "1Gi", pid: "1000" },
    cpuManagerPolicyOptions: { "full-pcpus-only": "true,x" },
    staticPodURLHeader: { a: ["1", "3"], b: ["2"] },
    featureGates: { A: true, B: false },
    registerWithTaints: [
      { key: "k", value: "v", effect: "NoSchedule" },
      { key: "x", value: "", effect: "NoExecute" },
    ],
    reservedMemory: [
      { numaNode: 0, limits: { memory: "1Gi", "hugepages-2Mi": "2Gi" } },
      { numaNode: 1, limits: { memory: "2Gi" } },
    ],
    logging: {
      vmodule: [
        { filePattern: "pod*", verbosity: 3 },
        { filePattern: "x", verbosity: 2 },
      ],
    },
  });
});

/** A valid value for each kind of flag. */
const sampleValues = {
  bool: "true",
  int: "7",
  long: "7",
  duration: "7s",
  string: "x",
  ip: "10.0.0.7",
  list: "a,b",
  map: "a=1",
  labels: "a=1,b",
  pair: "a=1",
  thresholds: "a<1",
  booleans: "A=true",
  headers: "a:1",
  taints: "a=b:NoSchedule",
  reservedMemory: "0:memory=1Gi",
  vmodule: "a=1",
  version: "raw",
} as const;

test("every configuration flag sets its field to a value of the field's type", () => {
  for (const [name, { kind, field }] of configurationFlags) {
    const layer = fieldsOf(`--${name}=${sampleValues[kind]}`);
    const result = kubeletConfigurationSchema.safeParse(layer);
    assert.deepEqual(result.error?.issues ?? [], [], `--${name}`);
    const known = Object.keys(fieldTable).some((path) => field === path || field.startsWith(`${path}.`));
    assert.ok(known, `${field} of --${name} is in the table`);
  }
});

const refused: readonly (readonly [words: readonly string[], message: RegExp])[] = [
  [["--nodename=x"], /^unknown flag: --nodename$/],
  [["--kubconfig=x"], /^unknown flag: --kubconfig; did you mean --kubeconfig\?$/],
  [["--constructor"], /^unknown flag: --constructor/],
  [["-x"], /^unknown flag: -x$/],
  [["run"], /^unknown command "run"$/],
  [["--config"], /^flag needs an argument: --config$/],
  [["--port=x"], /^invalid argument "x" for --port: expected a whole number$/],
  [["--sync-frequency=5"], /^invalid argument "5" for --sync-frequency: needs a unit: write 5s$/],
  [["--fail-swap-on=maybe"], /^invalid argument "maybe" for --fail-swap-on: expected true or false$/],
  [["--address=localhost"], /expected an IP address$/],
  [["--system-reserved=a"], /malformed pair "a", expect key=value$/],
  [["--max-pods=3000000000"], /^invalid argument "3000000000" for --max-pods: value out of range/],
  [["--pod-max-pids=9223372036854775808"], /value out of range: it does not fit int64$/],
  [["--", "run"], /^unknown command "run"$/],
  [["--manifest-url-header=secret"], /^invalid argument for --manifest-url-header: malformed pair, expect key:value$/],
];

for (const [words, message] of refused) {
  test(`${words.join(" ")} is refused`, () => {
    assert.throws(() => parseKubeletFlags(words), { name: "PodwrightError", exitCode: 2, message });
  });
}

test("a bare -- ends the flags", () => assert.deepEqual(fieldsOf("--port=1", "--"), { port: 1 }));

test("an empty text keeps an address and reserved memory, and removes taints", () => {
  const words = ["--address=10.0.0.7", "--reserved-memory=0:memory=1Gi", "--register-with-taints=a:NoSchedule"];
  assert.deepEqual(fieldsOf("--address=", "--reserved-memory="), {});
  assert.deepEqual(fieldsOf(...words, "--address=", "--reserved-memory=", "--register-with-taints="), {
    address: "10.0.0.7",
    reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }],
    registerWithTaints: [],
  });
});

test("repeated taints replace earlier ones", () => {
  assert.deepEqual(fieldsOf("--register-with-taints=a=b:NoSchedule", "--register-with-taints=c:NoExecute"), {
    registerWithTaints: [{ key: "c", value: "", effect: "NoExecute" }],
  });
});

test("a label without a value has an empty one", () => {
  const { node } = parseKubeletFlags(["--node-labels=a,b=c,", "--node-labels= d = e "]);
  assert.deepEqual(node.nodeLabels, { a: "", b: "c", d: "e" });
});

test("64-bit integers are exact, or rounded to the nearest number", () => {
  assert.deepEqual(fieldsOf("--pod-max-pids=9223372036854775807", "--max-open-files=+5"), {
    podPidsLimit: 2 ** 63,
    maxOpenFiles: 5,
  });
});

test("integers are parsed like Go's: also hexadecimal, octal and binary, with underscores between digits", () => {
  const read = (text: string): unknown => Object.values(fieldsOf(`--max-pods=${text}`))[0];
  assert.deepEqual(
    ["0x10", "0X1f", "0b1", "0o7", "010", "0_7", "1_0", "-0x1", "0"].map(read),
    [16, 31, 1, 7, 8, 7, 10, -1, 0],
  );
  for (const text of ["08", "1__0", "_1", "1_", "0x", "0x_", "0b2", "1e3", "", "9".repeat(1000)]) {
    assert.throws(() => read(text), /expected a whole number/, text);
  }
});

test("flags without a field are kept, and those without effect are warnings unless their value is harmless", () => {
  const { node, warnings } = parseKubeletFlags([
    ...["--root-dir=/r", "--node-labels=a=b,c=d", "--exit-on-lock-contention", "--hostname-override", "n"],
    ...[
      "--runtime-cgroups=/a",
      "--boot-id-file=/b",
      "--maximum-dead-containers=-1",
      "--kubeconfig=",
      "--v=2",
      "--max-pods=3",
      "--max-pods=4",
    ],
  ]);
  assert.equal(node.rootDir, "/r");
  assert.deepEqual(node.nodeLabels, { a: "b", c: "d" });
  assert.equal(node.exitOnLockContention, true);
  assert.equal(node.hostnameOverride, "n");
  assert.deepEqual(warnings, [
    "Flag --boot-id-file is not honoured: podwright collects statistics itself, without cAdvisor",
    "Flag --max-pods has been deprecated, This parameter should be set via the config file specified by --config.",
  ]);
});

test("--help and -h list every flag", () => {
  assert.equal(parseKubeletFlags(["--port=1", "-h", "--nonsense"]).help, true);
  for (const name of configurationFlags.keys()) assert.ok(kubeletHelp().includes(`--${name} `), name);
});

test("all wrong flags are reported at once, removed ones with their remedies", () => {
  const words = [
    ...["--container-runtime=remote", "--network-plugin", "cni", "--allow-privileged", "--logtostderr=true"],
    ...["--port=x", "--experimental_bootstrap_kubeconfig=/a"],
  ];
  assert.throws(() => parseKubeletFlags(words), {
    message: [
      "unknown flag: --container-runtime: removed in Kubernetes 1.27: delete it; use --container-runtime-endpoint",
      "unknown flag: --network-plugin: removed in Kubernetes 1.24: delete it; CNI is set up in the runtime's own configuration",
      "unknown flag: --allow-privileged: removed in Kubernetes 1.15: delete it; use admission control at the API server",
      "unknown flag: --logtostderr: removed in Kubernetes 1.26: delete it; logs go to standard error",
      'invalid argument "x" for --port: expected a whole number',
      "unknown flag: --experimental-bootstrap-kubeconfig: removed from the kubelet: use --bootstrap-kubeconfig",
    ].join("\n"),
  });
  assert.throws(() => parseKubeletFlags(["--experimental-qos-reserved=memory=50%"]), {
    message: "unknown flag: --experimental-qos-reserved; did you mean --qos-reserved?",
  });
});

test("the flags beside wrong ones keep their values, and an unknown flag takes its own along", () => {
  const words = ["--nodename", "x", "--max-pods=3", "--port=x", "run", "--unknown", "--node-ip=10.0.0.7", "--config"];
  const { flags, problems } = readKubeletFlags(words);
  assert.deepEqual(problems, [
    "unknown flag: --nodename",
    'invalid argument "x" for --port: expected a whole number',
    'unknown command "run"',
    "unknown flag: --unknown",
    "flag needs an argument: --config",
  ]);
  assert.deepEqual(flagLayer(flags.fields), { maxPods: 3 });
  assert.equal(flags.node.nodeIp, "10.0.0.7");
});

test("no present flag is reported as removed", () => {
  for (const name of [...configurationFlags.keys(), ...Object.keys(nodeFlags)]) {
    assert.equal(removedFlag(name), undefined, name);
  }
});
