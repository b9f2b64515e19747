import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { open, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CertificateAuthority } from "../apiserver/certificates.ts";
import { kubeconfig } from "../apiserver/kubeconfig.ts";
import { freePort } from "./free-port.ts";
import { Kubectl } from "./kubectl.ts";
import { until } from "./podwright.ts";

const programs = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] as const;
const directory = process.env["PODWRIGHT_CONTROL_PLANE"] ?? "";

/** One of the programs beside those of the control plane itself; it may not be there. */
export function controlPlaneProgram(name: "kubelet" | "kubeadm" | "e2e.test" | "ginkgo"): string {
  return join(directory, name);
}

/** The Go kubelet, for tests that switch from it and back. */
export const goKubelet = controlPlaneProgram("kubelet");
/** The reason to skip without a Go kubelet; false when there is one. */
export const noGoKubelet = existsSync(goKubelet) ? false : "PODWRIGHT_CONTROL_PLANE names no directory with kubelet";
/** The reason to skip without a real control plane; false when there is one. */
export const noControlPlane = programs.every((name) => existsSync(join(directory, name)))
  ? false
  : `PODWRIGHT_CONTROL_PLANE names no directory with ${programs.join(", ")}`;

const startLimitMs = 120_000;
export const bootstrapToken = "abcdef.0123456789abcdef";

/** Kubernetes' own control plane on loopback: etcd, API server, controllers and scheduler, with all their checks. */
export class ControlPlane implements AsyncDisposable {
  readonly authority = new CertificateAuthority("control-plane-test");
  readonly url: string;
  readonly #path: string;
  readonly #children: ChildProcess[] = [];

  private constructor(path: string, port: number) {
    this.#path = path;
    this.url = `https://127.0.0.1:${port}`;
  }

  /**
   * @param path an empty directory for all its files
   * @param options `schedules`: whether pods are scheduled automatically; default: yes
   */
  static async start(path: string, options: { readonly schedules?: boolean } = {}): Promise<ControlPlane> {
    await mkdir(path, { recursive: true });
    const port = await freePort();
    const plane = new ControlPlane(path, port);
    try {
      const etcd = `http://127.0.0.1:${await freePort()}`;
      await plane.#startEtcd(etcd);
      await plane.#startServer(etcd, port);
      const kubectl = plane.kubectl();
      await until(
        "the API server",
        // It is ready a moment before it serves its schemas, which kubectl apply needs.
        async () => {
          const asked = ["/readyz", "/openapi/v2"].map((what) => kubectl.run(["get", "--raw", what]));
          return (await Promise.all(asked)).every(({ code }) => code === 0);
        },
        startLimitMs,
      );
      await plane.#startControllers();
      if (options.schedules !== false) await plane.#startScheduler();
      return plane;
    } catch (error) {
      await plane[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The certificate of the cluster's authority. */
  get authorityFile(): string {
    return this.#in("ca.crt");
  }

  /** kubectl as an administrator. */
  kubectl(): Kubectl {
    return new Kubectl(join(this.#path, "admin.kubeconfig"), this.#path);
  }

  /** A kubeconfig for a user in those groups. */
  kubeconfig(commonName: string, organizations: readonly string[] = []): string {
    const credentials = this.authority.issue({ subject: { commonName, organizations }, usages: ["client"] });
    return kubeconfig(this.url, this.authority.certificate, credentials);
  }

  /** A kubeconfig with {@link bootstrapToken}. */
  bootstrapKubeconfig(): string {
    return kubeconfig(this.url, this.authority.certificate, { token: bootstrapToken });
  }

  /** The ends of the programs' logs, for diagnostics. */
  async evidence(): Promise<string> {
    const ends = programs.map(async (name) => {
      const text = await readFile(join(this.#path, `${name}.log`), "utf8").catch(() => "");
      return `--- ${name}\n${text.slice(-3000)}`;
    });
    return (await Promise.all(ends)).join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const { promise, resolve } = Promise.withResolvers<void>();
      child.once("exit", () => resolve());
      child.kill("SIGKILL");
      await promise;
    }
  }

  async #startEtcd(url: string): Promise<void> {
    const peers = `http://127.0.0.1:${await freePort()}`;
    await this.#start("etcd", [
      ...["--data-dir", join(this.#path, "etcd"), "--unsafe-no-fsync"],
      ...["--listen-client-urls", url, "--advertise-client-urls", url],
      ...["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers],
      ...["--initial-cluster", `default=${peers}`],
    ]);
  }

  async #startServer(etcd: string, port: number): Promise<void> {
    const own = this.authority.issue({
      subject: { commonName: "kube-apiserver" },
      names: ["127.0.0.1", "10.96.0.1", "kubernetes.default.svc"],
      usages: ["server"],
    });
    const toKubelets = this.authority.issue({
      subject: { commonName: "kube-apiserver-kubelet-client", organizations: ["system:masters"] },
      usages: ["client"],
    });
    const signer = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const { certificate, key } = this.authority.credentials;
    await this.#write("ca.crt", certificate);
    await this.#write("ca.key", key);
    await this.#write("admin.kubeconfig", this.kubeconfig("admin", ["system:masters"]));
    const tokens = `${bootstrapToken},kubelet-bootstrap,10001,"system:bootstrappers"\n`;
    const accountKey = await this.#write("sa.key", signer.privateKey.export({ type: "pkcs8", format: "pem" }));
    const accountPublicKey = signer.publicKey.export({ type: "spki", format: "pem" });
    await this.#start("kube-apiserver", [
      ...["--etcd-servers", etcd, "--secure-port", String(port)],
      ...["--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"],
      ...["--tls-cert-file", await this.#write("apiserver.crt", own.certificate)],
      ...["--tls-private-key-file", await this.#write("apiserver.key", own.key)],
      ...["--client-ca-file", this.#in("ca.crt"), "--token-auth-file", await this.#write("tokens.csv", tokens)],
      "--enable-bootstrap-token-auth",
      ...["--service-account-issuer", "https://kubernetes.default.svc"],
      ...["--service-account-signing-key-file", accountKey],
      ...["--service-account-key-file", await this.#write("sa.pub", accountPublicKey)],
      ...["--service-cluster-ip-range", "10.96.0.0/16", "--allow-privileged=true"],
      ...["--authorization-mode", "Node,RBAC", "--enable-admission-plugins", "NodeRestriction"],
      ...["--kubelet-client-certificate", await this.#write("kubelet-client.crt", toKubelets.certificate)],
      ...["--kubelet-client-key", await this.#write("kubelet-client.key", toKubelets.key)],
      ...["--kubelet-certificate-authority", this.#in("ca.crt"), "--kubelet-preferred-address-types", "InternalIP"],
    ]);
  }

  async #startControllers(): Promise<void> {
    const managers = await this.#write("controllers.kubeconfig", this.kubeconfig("system:kube-controller-manager"));
    await this.#start("kube-controller-manager", [
      ...["--kubeconfig", managers, "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials"],
      ...["--service-account-private-key-file", this.#in("sa.key"), "--root-ca-file", this.#in("ca.crt")],
      ...["--cluster-signing-cert-file", this.#in("ca.crt"), "--cluster-signing-key-file", this.#in("ca.key")],
    ]);
  }

  async #startScheduler(): Promise<void> {
    const scheduler = await this.#write("scheduler.kubeconfig", this.kubeconfig("system:kube-scheduler"));
    await this.#start("kube-scheduler", ["--kubeconfig", scheduler, "--leader-elect=false", "--secure-port=0"]);
  }

  async #start(name: (typeof programs)[number], flags: readonly string[]): Promise<void> {
    const log = await open(this.#in(`${name}.log`), "a");
    try {
      this.#children.push(spawn(join(directory, name), flags, { stdio: ["ignore", log.fd, log.fd] }));
    } finally {
      await log.close();
    }
  }

  #in(name: string): string {
    return join(this.#path, name);
  }

  async #write(name: string, text: string): Promise<string> {
    await writeFile(this.#in(name), text, { mode: 0o600 });
    return this.#in(name);
  }
}
