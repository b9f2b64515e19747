import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { KubeConnectionError } from "../ports/kube-api.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { CommandOptions, CommandResult } from "../ports/processes.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { decodeCredential, ExecCredentials } from "./exec-credentials.ts";
import { inClusterAccess } from "./in-cluster.ts";
import type { ExecPlugin } from "./exec-plugin.ts";
import { decodeKubeconfig, type KubeUser } from "./kubeconfig.ts";

const pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const pem64 = Buffer.from(pem).toString("base64");

function kubeconfig(cluster: string, user = "{}"): string {
  return `
apiVersion: v1
kind: Config
current-context: c
preferences: {}
contexts: [{ name: c, context: { cluster: k, user: u } }, { name: other, context: { cluster: none } }]
clusters: [{ name: k, cluster: ${cluster} }]
users: [{ name: u, user: ${user} }]
`;
}

const server = "server: https://api.example:6443/";

describe("decodeKubeconfig", () => {
  test("reads certificates from the file itself or from other files", () => {
    const user = `{ client-certificate: pki/node.pem, client-key: /pki/node.key }`;
    const access = decodeKubeconfig(
      kubeconfig(`{ ${server}, certificate-authority-data: ${pem64} }`, user),
      "/etc/k/conf",
    );
    assert.deepEqual(access, {
      server: "https://api.example:6443",
      ca: { kind: "inline", text: pem },
      serverName: undefined,
      insecure: false,
      user: {
        certificate: {
          cert: { kind: "file", path: "/etc/k/pki/node.pem" },
          key: { kind: "file", path: "/pki/node.key" },
        },
      },
    });
  });

  test("prefers a token's file to the token, as client-go does", () => {
    const user = `{ token: s3cret, tokenFile: token }`;
    const access = decodeKubeconfig(kubeconfig(`{ ${server} }`, user), "/etc/k/conf");
    assert.deepEqual(access?.user, { token: { kind: "file", path: "/etc/k/token" } });
  });

  test("without a scheme TLS is used if the server or the client has a certificate", () => {
    const bare = "server: 10.0.0.1:6443";
    const address = (cluster: string, user?: string): string | undefined =>
      decodeKubeconfig(kubeconfig(`{ ${bare}${cluster} }`, user), "/conf")?.server;
    assert.equal(address(""), "http://10.0.0.1:6443");
    assert.equal(address(", certificate-authority: ca"), "https://10.0.0.1:6443");
    assert.equal(address(", insecure-skip-tls-verify: true"), "https://10.0.0.1:6443");
    assert.equal(address("", "{ client-certificate: c, client-key: k }"), "https://10.0.0.1:6443");
  });

  test("no credentials are sent to a server without TLS, as in client-go", () => {
    const users = ["{ token: s3cret }", "{ tokenFile: /t }", "{ client-certificate: c, client-key: k }"];
    for (const user of users) {
      assert.deepEqual(decodeKubeconfig(kubeconfig(`{ server: "http://10.0.0.1:8080" }`, user), "/conf")?.user, {});
    }
  });

  test("beside a token or a certificate a plugin is never run, as in client-go", () => {
    const exec =
      "exec: { apiVersion: client.authentication.k8s.io/v1, command: p, provideClusterInfo: true, interactiveMode: Never }";
    const user = (more: string): KubeUser | undefined =>
      decodeKubeconfig(kubeconfig(`{ ${server} }`, `{ ${exec}${more} }`), "/conf")?.user;
    assert.deepEqual(Object.keys(user("") ?? {}), ["exec"]);
    assert.deepEqual(user(", token: t"), { token: { kind: "inline", text: "t" } });
    assert.deepEqual(Object.keys(user(", client-certificate: c, client-key: k") ?? {}), ["certificate"]);
  });

  test("proxy-url is used unchanged, and passed to plugins", () => {
    const exec =
      "exec: { apiVersion: client.authentication.k8s.io/v1, command: p, provideClusterInfo: true, interactiveMode: Never }";
    const proxyUrl = "http://me:p%40ss@proxy:3128";
    const access = decodeKubeconfig(kubeconfig(`{ ${server}, proxy-url: "${proxyUrl}" }`, `{ ${exec} }`), "/conf");
    assert.equal(access?.proxyUrl, proxyUrl);
    assert.equal(access?.user.exec?.cluster?.["proxy-url"], proxyUrl);
    assert.ok(!("proxyUrl" in (decodeKubeconfig(kubeconfig(`{ ${server}, proxy-url: "" }`), "/conf") ?? {})));
  });

  test("it is read as client-go reads it: YAML 1.1, its first document, the last of two keys", () => {
    const text = `\ufeffcurrent-context: yes\ncurrent-context: "on"\ncontexts: [{ name: "on", context: { cluster: e1 } }]
clusters: [{ name: e1, cluster: { server: "https://h", insecure-skip-tls-verify: yes } }]\n---\nkind: Other\n`;
    const access = decodeKubeconfig(text, "/conf");
    assert.deepEqual([access?.server, access?.insecure], ["https://h", true]);
  });

  test("a token may end with a line break", () => {
    const access = decodeKubeconfig(kubeconfig(`{ ${server} }`, '{ token: "t\\n" }'), "/conf");
    assert.deepEqual(access?.user, { token: { kind: "inline", text: "t" } });
  });

  test("without clusters and contexts it stands for the pod's own service account", () => {
    assert.equal(decodeKubeconfig("apiVersion: v1\nkind: Config\n", "/conf"), undefined);
    const environment = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };
    assert.equal(inClusterAccess(environment).server, "https://[fd00::1]:443");
    assert.throws(() => inClusterAccess({}), /has no cluster, and podwright does not run in a pod/);
  });

  test("reads a plugin's whole configuration, with paths relative to the file", () => {
    const exec = `{
      apiVersion: client.authentication.k8s.io/v1, command: ./bin/get-token, args: [--now], interactiveMode: IfAvailable,
      env: [{ name: A, value: "1" }, { name: B }], installHint: "brew install\\e[1m it", provideClusterInfo: true,
    }`;
    const extensions =
      "[{ name: client.authentication.k8s.io/exec, extension: { audience: x } }, { name: other, extension: 1 }]";
    const cluster = `{ ${server}, tls-server-name: api, extensions: ${extensions} }`;
    const found = decodeKubeconfig(kubeconfig(cluster, `{ exec: ${exec} }`), "/etc/k/conf")?.user.exec;
    assert.deepEqual(found, {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "/etc/k/bin/get-token",
      args: ["--now"],
      env: { A: "1", B: "" },
      installHint: "brew install\\u001b[1m it",
      cluster: { server: "https://api.example:6443/", "tls-server-name": "api", config: { audience: "x" } },
    });
  });

  test("a plugin's interactiveMode has a default in v1beta1 alone", () => {
    const exec = (more: string): string => kubeconfig(`{ ${server} }`, `{ exec: { command: p, ${more} } }`);
    const beta = decodeKubeconfig(exec("apiVersion: client.authentication.k8s.io/v1beta1"), "/conf");
    assert.equal(beta?.user.exec?.command, "p", "a name is searched for in PATH");
    assert.throws(
      () => decodeKubeconfig(exec("apiVersion: client.authentication.k8s.io/v1"), "/conf"),
      /users\[u\]\.user\.exec\.interactiveMode: must be specified to use the exec authentication plugin: Never or IfAvail/,
    );
  });

  test("is read as Kubernetes reads YAML: fields that it does not know have no say, of a repeated one the last counts", () => {
    const cluster = `{ ${server}, insecure-skip-tls-verify: yes, tls-server-name: a, tls-server-name: b, disable-compression: true, new: 1 }`;
    const access = decodeKubeconfig(
      `${kubeconfig(cluster, "{ token: t, unknown: [1] }")}---\nanother: *document\n---\nq: "\n`,
      "/conf",
    );
    assert.deepEqual(
      [access?.insecure, access?.serverName, access?.user],
      [true, "b", { token: { kind: "inline", text: "t" } }],
    );
    const json = JSON.stringify({
      clusters: [{ name: "k", cluster: { server: "https://api" } }],
      contexts: [{ name: "c", context: { cluster: "k", user: "" } }],
      "current-context": "c",
    });
    assert.deepEqual(decodeKubeconfig(json, "/conf")?.user, {}, "JSON, without apiVersion, kind and user");
  });

  const good = kubeconfig(`{ ${server} }`);
  const bad: readonly (readonly [what: string, text: string, error: RegExp])[] = [
    ["text that is not YAML", "a: [", /^PodwrightError: kubeconfig \/conf: is not YAML at line 1, column 5: /],
    ["YAML 1.2", "%YAML 1.2\n---\na: 1", /is not YAML at line 1, column 1: found incompatible YAML document/],
    ["another version", "apiVersion: v2\nkind: Config", /conf: apiVersion: expected v1/],
    ["another kind", "apiVersion: v1\nkind: Pod", /conf: kind: expected Config/],
    ["contexts without one that counts", good.replace("current-context: c", ""), /current-context: Required value/],
    [
      "a name that is there twice",
      good.replace("users: [", "users: [{ name: u, user: {} }, "),
      /users\[u\]: duplicate name/,
    ],
    ["a context's user that is not there", good.replace("user: u }", "user: z }"), /users\[z\]\.user: not found/],
    [
      "a context's cluster that is not there",
      good.replace("cluster: k,", "cluster: z,"),
      /clusters\[z\]\.cluster: not found/,
    ],
    ["a context that is not there", "current-context: x\ncontexts: [{ name: z }]", /contexts\[x\]\.context: not found/],
    ["a cluster without a server", kubeconfig("{}"), /clusters\[k\]\.cluster\.server: Required value/],
    ["a SOCKS proxy", kubeconfig(`{ ${server}, proxy-url: "socks5://p" }`), /cluster\.proxy-url: SOCKS is not supp/],
    [
      "a proxy without a scheme",
      kubeconfig(`{ ${server}, proxy-url: "p:3128" }`),
      /proxy-url: is not an http or https URL/,
    ],
    ["a server that is no URL", kubeconfig("{ server: 'ftp://x' }"), /server: is not an http or https URL/],
    [
      "an authority that is not checked",
      kubeconfig(`{ ${server}, certificate-authority: ca, insecure-skip-tls-verify: true }`),
      /insecure-skip-tls-verify: conflicts with a certificate authority/,
    ],
    ["a certificate without its key", kubeconfig(`{ ${server} }`, "{ client-certificate: c }"), /client-key: Required/],
    ["a key without its certificate", kubeconfig(`{ ${server} }`, "{ client-key: k }"), /client-certificate: Required/],
    ...(
      [
        [
          "certificate-authority",
          `{ ${server}, certificate-authority: a, certificate-authority-data: ${pem64} }`,
          "{}",
        ],
        [
          "client-certificate",
          `{ ${server} }`,
          `{ client-certificate: a, client-certificate-data: ${pem64}, client-key: k }`,
        ],
        ["client-key", `{ ${server} }`, `{ client-certificate: a, client-key: k, client-key-data: ${pem64} }`],
      ] as const
    ).map(([field, cluster, user]): [string, string, RegExp] => [
      `both ${field} and its data`,
      kubeconfig(cluster, user),
      new RegExp(`\\.${field}: conflicts with ${field}-data: remove one`),
    ]),
    [
      "a user that acts for another",
      kubeconfig(`{ ${server} }`, "{ token: t, as: admin }"),
      /\.as: impersonation is not supported/,
    ],
    [
      "a group of another",
      kubeconfig(`{ ${server} }`, "{ token: t, as-groups: [g] }"),
      /\.as-groups: impersonation is not supported/,
    ],
    [
      "a plugin without a program",
      kubeconfig(`{ ${server} }`, "{ exec: { apiVersion: v } }"),
      /exec\.command: Required/,
    ],
    [
      "a plugin of no version",
      kubeconfig(`{ ${server} }`, "{ exec: { command: p } }"),
      /exec\.apiVersion: expected client/,
    ],
    [
      "a plugin of a version that is gone",
      kubeconfig(`{ ${server} }`, "{ exec: { command: p, apiVersion: client.authentication.k8s.io/v1alpha1 } }"),
      /exec\.apiVersion: expected client\.authentication\.k8s\.io\/v1 or v1beta1/,
    ],
    [
      "a plugin of another mode",
      kubeconfig(
        `{ ${server} }`,
        "{ exec: { apiVersion: client.authentication.k8s.io/v1, command: p, interactiveMode: Sometimes } }",
      ),
      /exec\.interactiveMode: expected Never or IfAvailable/,
    ],
    [
      "a variable of a plugin without a name",
      kubeconfig(
        `{ ${server} }`,
        "{ exec: { apiVersion: client.authentication.k8s.io/v1beta1, command: p, env: [{ value: x }] } }",
      ),
      /exec\.env: each variable needs a name/,
    ],
    ["data that is no PEM", kubeconfig(`{ ${server}, certificate-authority-data: eA== }`), /is not PEM in base64/],
    ["basic authentication", kubeconfig(`{ ${server} }`, "{ username: a, password: b }"), /username: basic auth/],
    ["an auth provider", kubeconfig(`{ ${server} }`, "{ auth-provider: { name: gcp } }"), /auth-provider: .*use exec/],
    [
      "a plugin that asks a person",
      kubeconfig(
        `{ ${server} }`,
        "{ exec: { apiVersion: client.authentication.k8s.io/v1, command: p, interactiveMode: Always } }",
      ),
      /exec\.interactiveMode: Always: a node has no terminal/,
    ],
    ["a token of two lines", kubeconfig(`{ ${server} }`, '{ token: "a\\nb" }'), /user\.token: holds a line break/],
    ["a token of nothing", kubeconfig(`{ ${server} }`, '{ token: " " }'), /user\.token: is empty/],
    ["a field of the wrong type", kubeconfig(`{ ${server} }`, "{ token: { a: b } }"), /user\.token: expected string/],
  ];
  for (const [what, text, error] of bad) {
    test(`refuses ${what}, and names the field`, () => {
      assert.throws(() => decodeKubeconfig(text, "/conf"), error);
    });
  }

  test("never shows a secret in an error", () => {
    const text = kubeconfig(`{ ${server} }`, "{ token: [s3cret] }");
    assert.throws(
      () => decodeKubeconfig(text, "/conf"),
      (error: Error) => !error.message.includes("s3cret"),
    );
    assert.throws(
      () => decodeKubeconfig(kubeconfig(`{ ${server}, proxy-url: "http://u:s3cret@p:x" }`), "/conf"),
      (error: Error) => !error.message.includes("s3cret"),
    );
    assert.throws(
      () => decodeKubeconfig("token: s3cret: x", "/conf"),
      (error: Error) => !error.message.includes("s3cret"),
    );
  });
});

describe("ExecCredentials", () => {
  const apiVersion = "client.authentication.k8s.io/v1";
  const plugin: ExecPlugin = {
    apiVersion,
    command: "get-token",
    args: ["--now"],
    env: { REGION: "r" },
    installHint: "install it from example.org",
    cluster: { server: "https://api" },
  };

  class Plugin {
    readonly clock = new ManualClock();
    readonly runs: CommandOptions[] = [];
    result: Partial<CommandResult> = {};
    readonly credentials: ExecCredentials;

    constructor(args = plugin.args) {
      const run: typeof systemProcesses.run = async (_program, _arguments, options) => {
        this.runs.push(options);
        return { exitCode: 0, signal: undefined, stdout: "", stderr: "", ...this.result };
      };
      const deps = { clock: this.clock, processes: { ...systemProcesses, run }, authority: async () => pem };
      this.credentials = new ExecCredentials({ ...plugin, args }, deps);
    }

    gives(status: object): void {
      this.result = { stdout: JSON.stringify({ apiVersion, kind: "ExecCredential", status }) };
    }
  }

  test("a plugin runs once until its credentials expire or are rejected", async () => {
    const world = new Plugin();
    world.gives({ token: "a", expirationTimestamp: new Date(world.clock.now() + 60_000).toISOString() });
    const [first, second] = await Promise.all([world.credentials.get(), world.credentials.get()]);
    assert.deepEqual([first.token, second.token, world.runs.length], ["a", "a", 1]);
    await world.clock.advance(60_000);
    world.gives({ token: "b" });
    assert.equal((await world.credentials.get()).token, "b");
    const refused = await world.credentials.get();
    // Concurrent requests with the same credential are rejected one after another.
    for (let request = 0; request < 16; request++) {
      world.credentials.refused(refused);
      await world.credentials.get();
    }
    assert.equal(world.runs.length, 3);
    const info: unknown = JSON.parse(world.runs[0]?.environment?.["KUBERNETES_EXEC_INFO"] ?? "");
    assert.deepEqual(info, {
      apiVersion,
      kind: "ExecCredential",
      spec: { interactive: false, cluster: { server: "https://api", "certificate-authority-data": pem64 } },
    });
    assert.equal(world.runs[0]?.environment?.["REGION"], "r");
  });

  test("a failed plugin is named with its message and its install hint", async () => {
    const world = new Plugin();
    world.result = { exitCode: 1, stdout: "s3cret", stderr: "no such account\n" };
    await assert.rejects(
      world.credentials.get(),
      /^KubeConnectionError: the credential plugin get-token ended with exit code 1: no such account: install it from/,
    );
  });

  test("a plugin that fails without a message is shown with its command, without possible secrets", async () => {
    const world = new Plugin([
      ...["get", "--token=s3cret", "--client-secret", "s3cret", "--region", "r", "--cache=a=b"],
      ...["-p", "x", "--api-key", "--password", "s3cret"],
    ]);
    world.result = { exitCode: 1, stdout: "s3cret", stderr: " \n" };
    await assert.rejects(
      world.credentials.get(),
      new KubeConnectionError(
        "the credential plugin get-token ended with exit code 1 and printed no error; it was run as: get-token " +
          "get --token=… --client-secret … --region r --cache=a=b -p x --api-key --password …: install it from example.org",
      ),
    );
    world.result = { exitCode: 0, stdout: '{"kind": "s3cret', stderr: "the disk is full\n" };
    await assert.rejects(
      world.credentials.get(),
      /^KubeConnectionError: the credential plugin get-token printed something that is not JSON; its output: the disk is full/,
    );
    world.result = { exitCode: 0, stdout: "", stderr: "" };
    await assert.rejects(world.credentials.get(), /get-token printed nothing instead of an ExecCredential/);
  });

  test("a certificate of a plugin has to be one, with its key", async () => {
    const world = new Plugin();
    world.gives({ clientCertificateData: pem, clientKeyData: "s3cret" });
    await assert.rejects(
      world.credentials.get(),
      /get-token returned a certificate and a key that are not PEM, or do not/,
    );
  });

  test("a plugin's output is validated", () => {
    const answer = (changed: object): string =>
      JSON.stringify({ apiVersion, kind: "ExecCredential", status: { token: "t" }, ...changed });
    assert.deepEqual(decodeCredential(answer({}), apiVersion), { token: "t" });
    assert.equal(decodeCredential("s3cret", apiVersion), "printed something that is not JSON");
    const problem = (text: string): string => JSON.stringify(decodeCredential(text, apiVersion));
    assert.match(problem(answer({ apiVersion: "v0" })), /returned v0 instead/);
    assert.match(problem(answer({ status: {} })), /neither a token nor a certificate/);
    const late = answer({ status: { token: "t", expirationTimestamp: "soon" } });
    assert.match(problem(late), /is not a time/);
    assert.deepEqual(decodeCredential(answer({ status: { token: "t\n" } }), apiVersion), { token: "t" });
    const broken = problem(answer({ status: { token: "s3cret\nX-Evil: 1" } }));
    assert.match(broken, /^"returned a token that holds a line break/);
  });
});
