import { dirname, resolve } from "node:path/posix";
import { ApiClient } from "../api-client/client.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { CertificateManager, type RequestClient } from "../certificates/certificate-manager.ts";
import { CertificateStore, type StoredPair } from "../certificates/certificate-store.ts";
import { nextLookMs, timeProblem } from "../certificates/validity.ts";
import { clientTemplate, otherNodeOf } from "../certificates/request-template.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import type { KubeAccess } from "../kube/kubeconfig.ts";
import type { Recorder } from "../journal/entry.ts";
import { proxyName, proxyOf } from "../kube/proxy.ts";
import { systemCertificateTools } from "../linux/certificates/certificate-tools.ts";
import type { CertificateInfo } from "../ports/certificates.ts";
import { FileError } from "../ports/files.ts";
import type { KubeTransport } from "../ports/kube-api.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import { type FoundKubeconfig, readKubeconfig } from "./kubeconfig-file.ts";
import { clientCertificate, transportOf } from "./node-transport.ts";

/** Interval of checking a certificate that is not renewed. */
const lookMs = 10 * 60_000;

/** The node's connection and identity at the API server. */
export interface NodeCredentials {
  readonly access: KubeAccess;
  /** Gets and renews the client certificate; undefined: the kubeconfig's is used. */
  readonly certificates: CertificateManager | undefined;
  /** Maintains the credentials until the signal aborts. Never rejects. */
  run(journal: Recorder, signal: AbortSignal): Promise<void>;
}

export interface CredentialParts {
  readonly ports: Ports;
  readonly log: Logger;
  readonly flags: NodeFlagValues;
  readonly nodeName: string;
  /** rotateCertificates. */
  readonly renews: boolean;
}

/** `--cert-dir`. */
export function certificateDirectory({ certDir }: NodeFlagValues): string {
  return resolve(process.cwd(), certDir || "/var/lib/kubelet/pki");
}

/**
 * The credentials of `--kubeconfig` and `--bootstrap-kubeconfig`; undefined without the first: standalone. With the
 * second a node without a valid client certificate requests one in the background.
 * @throws PodwrightError (bad input) for unusable files
 */
export async function nodeCredentials(parts: CredentialParts): Promise<NodeCredentials | undefined> {
  const { ports, log, flags, renews } = parts;
  const files = await credentialFiles(ports, flags);
  if (files === undefined) return undefined;
  const { path, found, bootstrap } = files;
  if (found.access !== undefined) {
    warnOfOther(parts, found.chain, path);
    tellWay(log, found.access, path);
  }
  if (!("begin" in files)) {
    const { access } = files.found;
    return renews
      ? await managed(parts, { access, found: files.found, bootstrap, kubeconfig: path })
      : unmanaged(parts, access, path);
  }
  log.info("kubeconfig has no valid client certificate; requesting one", { path, reason: whyNot(found) });
  tellWay(log, files.begin.access, files.bootstrap);
  return await managed(parts, { access: files.begin.access, found: undefined, bootstrap, kubeconfig: path });
}

/** A kubeconfig that can be used. */
type UsableKubeconfig = Extract<FoundKubeconfig, { readonly access: KubeAccess }>;

/** The kubeconfigs of the flags: the node's own is used, or the bootstrap one until the node has its certificate. */
type CredentialFiles =
  | { readonly path: string; readonly found: UsableKubeconfig; readonly bootstrap: string | undefined }
  | {
      readonly path: string;
      readonly found: FoundKubeconfig;
      readonly bootstrap: string;
      readonly begin: UsableKubeconfig;
    };

/**
 * Reads the kubeconfigs of the flags; undefined without one: standalone.
 * @throws PodwrightError (bad input) for unusable files
 */
export async function credentialFiles(
  ports: Ports,
  { kubeconfig = "", bootstrapKubeconfig = "" }: NodeFlagValues,
): Promise<CredentialFiles | undefined> {
  if (kubeconfig === "") {
    if (bootstrapKubeconfig === "") return undefined;
    const message = "--bootstrap-kubeconfig requires --kubeconfig, the file that it writes";
    throw new PodwrightError(ExitCode.badInput, message, { remedy: "set --kubeconfig too" });
  }
  const path = resolve(process.cwd(), kubeconfig);
  const found = await readKubeconfig(ports, path);
  if (bootstrapKubeconfig === "") {
    if (found.access === undefined) throw unusable(found, "--kubeconfig");
    return { path, found, bootstrap: undefined };
  }
  const bootstrap = resolve(process.cwd(), bootstrapKubeconfig);
  if (found.access !== undefined && found.pair !== undefined && found.problem === undefined) {
    return { path, found, bootstrap };
  }
  const begin = await readKubeconfig(ports, bootstrap);
  if (begin.access === undefined) throw unusable(begin, "--bootstrap-kubeconfig");
  return { path, found, bootstrap, begin };
}

/** Logs easily missed properties of the connection. */
function tellWay(log: Logger, access: KubeAccess, path: string): void {
  const { server } = access;
  if (server.startsWith("http:")) {
    log.warn("API server address has no TLS: connecting in clear text, without credentials", {
      path,
      server,
      remedy: "use https:// in the kubeconfig",
    });
  }
  const proxy = proxyOf(access, process.env);
  if (proxy === undefined) return;
  const from = access.proxyUrl === undefined ? "the environment" : "proxy-url of the kubeconfig";
  log.info("connecting to the API server through a proxy", { path, server, proxy: proxyName(proxy), from });
}

/** With another node's certificate authentication succeeds, and nearly every request is forbidden. */
function warnOfOther({ log, nodeName }: CredentialParts, [first]: readonly CertificateInfo[], path: string): void {
  const certificateOf = first && otherNodeOf(first, nodeName);
  if (certificateOf === undefined) return;
  log.warn("client certificate is for another node: the API server will reject this node", {
    ...{ path, certificateOf, node: nodeName },
    remedy:
      `use a kubeconfig with a certificate for system:node:${nodeName}; ` +
      `or set --hostname-override=${certificateOf}, if that is this node's name`,
  });
}

/** The kubeconfig's certificate, which is not renewed here. */
function unmanaged({ ports, log }: CredentialParts, access: KubeAccess, path: string): NodeCredentials {
  return {
    access,
    certificates: undefined,
    run: async (_journal, signal) => {
      // The server rejects an expired certificate without a reason.
      while (!signal.aborted) {
        const found = await readKubeconfig(ports, path);
        const { problem } = found;
        const early = found.access && timeProblem(found.chain, ports.clock.now());
        const remedy = "install a valid one, or set --bootstrap-kubeconfig; if the clock is wrong, correct it";
        if (problem !== undefined) {
          log.error("cannot use the kubeconfig's client certificate", { path, problem, remedy });
        } else if (early !== undefined) {
          log.warn("kubeconfig client certificate has a problem", { path, problem: early });
        }
        const waitMs = nextLookMs(found.access === undefined ? [] : found.chain, ports.clock.now(), lookMs);
        await ports.clock.sleep("recheck of the kubeconfig's certificate", waitMs, signal).catch(() => {});
      }
    },
  };
}

function whyNot(found: FoundKubeconfig): string {
  return found.problem ?? "it holds none";
}

function unusable({ problem, cause }: Extract<FoundKubeconfig, { access: undefined }>, flag: string): PodwrightError {
  if (cause instanceof PodwrightError) return cause;
  return new PodwrightError(ExitCode.badInput, `failed to read the kubeconfig: ${problem}`, {
    cause,
    remedy: `check ${flag}`,
  });
}

interface ManagedBy {
  /** How the server is reached. */
  readonly access: KubeAccess;
  /** The kubeconfig in use; undefined: it will be written. */
  readonly found: FoundKubeconfig | undefined;
  /** Path of the bootstrap kubeconfig. */
  readonly bootstrap: string | undefined;
  /** Path of the kubeconfig. */
  readonly kubeconfig: string;
}

async function managed(parts: CredentialParts, by: ManagedBy): Promise<NodeCredentials> {
  const { ports, log, flags, nodeName, renews } = parts;
  const { found, access } = by;
  const certificate = found?.access?.user.certificate;
  const files =
    certificate?.cert.kind === "file" && certificate.key.kind === "file"
      ? { certificate: certificate.cert.path, key: certificate.key.path }
      : undefined;
  const store = new CertificateStore(
    { files: ports.files, tools: systemCertificateTools },
    { directory: certificateDirectory(flags), prefix: "kubelet-client", ...(files && { files }) },
  );
  const inline = certificate?.cert.kind === "inline" ? found?.access && found.pair : undefined;
  const writes = found === undefined;
  const write = (): void => {
    // An expired one must not be referenced.
    if (writes && certificates.current !== undefined) void writeKubeconfig(ports, log, by, store.currentPath);
  };
  const certificates = new CertificateManager(
    {
      ...{ store, tools: systemCertificateTools, clock: ports.clock, random: ports.random, log },
      open: async (current) => await openRequests(ports, by, current),
    },
    {
      ...{ purpose: "client", template: () => clientTemplate(nodeName), renews },
      ...(inline && { initial: inline }),
    },
  );
  certificates.onChange(write);
  await certificates.load();
  return {
    access: { ...access, user: {} },
    certificates,
    run: async (journal, signal) => certificates.run(journal, signal),
  };
}

async function writeKubeconfig(ports: Ports, log: Logger, by: ManagedBy, pairPath: string): Promise<void> {
  try {
    // The YAML writer is loaded only here.
    const { kubeconfigText } = await import("../certificates/kubeconfig-text.ts");
    await ports.files.makeDirectory(dirname(by.kubeconfig), 0o755);
    await ports.files.writeAtomic(by.kubeconfig, kubeconfigText(by.access, pairPath), 0o600);
    log.info("kubeconfig written", { path: by.kubeconfig });
  } catch (error) {
    const problem = error instanceof FileError ? error.message : String(error);
    // The next start finds the certificate in its directory, and the server only in the other kubeconfig.
    log.error("cannot write the kubeconfig; a restart still needs --bootstrap-kubeconfig", { error: problem });
  }
}

/** Requests with the current certificate, or the initial credentials. */
async function openRequests(ports: Ports, by: ManagedBy, current: StoredPair | undefined): Promise<RequestClient> {
  if (current !== undefined) {
    const access = { ...by.access, user: {} };
    return requestsOver(
      ports,
      transportOf(ports, access, async () => clientCertificate(current)),
    );
  }
  if (by.bootstrap !== undefined) {
    const begin = await readKubeconfig(ports, by.bootstrap);
    if (begin.access === undefined) throw new Error(`the bootstrap kubeconfig: ${begin.problem}`);
    if (begin.problem !== undefined) throw new Error(`the bootstrap kubeconfig's ${begin.problem}`);
    return requestsOver(ports, transportOf(ports, begin.access));
  }
  const { token, exec } = by.access.user;
  if (token !== undefined || exec !== undefined) return requestsOver(ports, transportOf(ports, by.access));
  throw new Error(
    "no credentials to request another one: use a kubeconfig with a valid certificate, or --bootstrap-kubeconfig with a token",
  );
}

function requestsOver({ clock }: Ports, transport: KubeTransport & Disposable): RequestClient {
  const none = { perSecond: 0, burst: 0 };
  const client = new ApiClient({ transport, clock }, { requests: none, events: none, heartbeatTimeoutMs: 10_000 });
  return { client, [Symbol.dispose]: () => transport[Symbol.dispose]() };
}
