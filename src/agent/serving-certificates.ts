import { basename, dirname } from "node:path/posix";
import type { ApiClient } from "../api-client/client.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { CertificateManager } from "../certificates/certificate-manager.ts";
import { CertificateStore } from "../certificates/certificate-store.ts";
import { servingTemplate } from "../certificates/request-template.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import { featureGates } from "../config/feature-gates.ts";
import { selfSignedFiles, type ServingSettings } from "../config/serving.ts";
import { systemCertificateTools } from "../linux/certificates/certificate-tools.ts";
import { selfSignedCertificate } from "../linux/certificates/certificates.ts";
import { authoritiesProblem } from "../linux/certificates/client-certificate.ts";
import type { TlsMaterial } from "../linux/servers/https-server.ts";
import type { HostAddresses } from "../node/host-addresses.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";

/** Replaced files are noticed immediately through inotify, and after this in any case. */
const reloadMs = 60_000;
const maxFileBytes = 1024 * 1024;

/** The inputs of a serving certificate. */
export interface CertificateParts {
  readonly ports: Ports;
  readonly log: Logger;
  readonly configuration: KubeletConfiguration;
  readonly nodeName: string;
  readonly addresses: HostAddresses;
  /** The directory of generated and issued certificates; upstream's `--cert-dir`. */
  readonly certificateDirectory: string;
}

export interface ServingParts {
  readonly from: CertificateParts;
  /** Gets the serving certificate from the cluster's signer; undefined: it comes from files. */
  readonly manager: CertificateManager | undefined;
}

/** The manager of a serving certificate from the cluster's signer (serverTLSBootstrap); undefined: not used. */
export async function servingCertificates(
  parts: CertificateParts,
  client: ApiClient | undefined,
): Promise<CertificateManager | undefined> {
  const { ports, log, configuration, nodeName, addresses, certificateDirectory } = parts;
  const { enableServer, serverTLSBootstrap = false, tlsCertFile = "", tlsPrivateKeyFile = "" } = configuration;
  if (!enableServer || !serverTLSBootstrap || client === undefined) return undefined;
  const dnsOnly = featureGates(configuration.featureGates).enabled("AllowDNSOnlyNodeCSR");
  const tools = systemCertificateTools;
  const store = new CertificateStore(
    { files: ports.files, tools },
    {
      ...{ directory: certificateDirectory, prefix: "kubelet-server" },
      ...(tlsCertFile !== "" && { files: { certificate: tlsCertFile, key: tlsPrivateKeyFile } }),
    },
  );
  const open = async () => ({ client, [Symbol.dispose]: () => {} });
  const manager = new CertificateManager(
    { store, tools, clock: ports.clock, random: ports.random, log, open },
    { purpose: "serving", template: () => servingTemplate(nodeName, addresses.ofNode, dnsOnly), renews: true },
  );
  addresses.onChange(() => manager.wake());
  await manager.load();
  return manager;
}

/**
 * The client authorities, PEM; undefined: none.
 * @throws PodwrightError (bad input) for a missing or empty file: every client would be unknown
 */
export async function readClientAuthorities(
  files: Pick<Files, "read">,
  { clientAuthoritiesFile }: Pick<ServingSettings, "clientAuthoritiesFile">,
): Promise<string | undefined> {
  if (clientAuthoritiesFile === undefined) return undefined;
  const unusable = (problem: string, cause?: unknown): PodwrightError => {
    const message = `unable to load client CA file ${JSON.stringify(clientAuthoritiesFile)}: ${problem}`;
    return new PodwrightError(ExitCode.badInput, message, {
      cause,
      remedy: "authentication.x509.clientCAFile (--client-ca-file) names a PEM file of the authorities' certificates",
    });
  };
  let text: string;
  try {
    text = new TextDecoder().decode(await files.read(clientAuthoritiesFile, maxFileBytes));
  } catch (error) {
    if (error instanceof FileError) throw unusable(errorMessage(error), error);
    throw error;
  }
  const problem = authoritiesProblem(text);
  if (problem !== undefined) throw unusable(problem);
  return text;
}

/**
 * From the cluster's signer, from configured files, or from a self-signed pair in the certificate directory, created if
 * missing.
 */
export async function tlsMaterial({ from, manager }: ServingParts, settings: ServingSettings): Promise<TlsMaterial> {
  const { ports, certificateDirectory, nodeName, addresses } = from;
  const { files, clock } = ports;
  const read = async (path: string): Promise<string> => {
    return new TextDecoder().decode(await files.read(path, maxFileBytes));
  };
  const { serving } = settings;
  const clientAuthorities = await readClientAuthorities(files, settings);
  if (manager !== undefined) {
    const { certificate, key } = manager.current ?? {};
    return { certificate, key, clientAuthorities };
  }
  if (serving !== undefined) {
    const certificate = await read(serving.certificateFile);
    return { certificate, key: await read(serving.keyFile), clientAuthorities };
  }
  const { certificateFile, keyFile } = selfSignedFiles(certificateDirectory);
  const [certificate, key] = await Promise.all([files.stat(certificateFile), files.stat(keyFile)]);
  if (certificate === undefined || key === undefined) {
    const made = selfSignedCertificate([nodeName, ...addresses.list], new Date(clock.now()));
    await files.makeDirectory(certificateDirectory, 0o755);
    await files.writeAtomic(keyFile, made.key, 0o600);
    await files.writeAtomic(certificateFile, made.certificate, 0o644);
  }
  return { certificate: await read(certificateFile), key: await read(keyFile), clientAuthorities };
}

/** Warns of an expired self-signed pair, once at the start. */
export function warnOfExpired(
  { from, manager }: ServingParts,
  { serving }: ServingSettings,
  { certificate }: TlsMaterial,
): void {
  const { ports, log, certificateDirectory } = from;
  if (manager !== undefined || serving !== undefined || certificate === undefined) return;
  const notAfterMs = systemCertificateTools.certificates(certificate)[0]?.notAfterMs ?? Infinity;
  if (ports.clock.now() <= notAfterMs) return;
  const { certificateFile, keyFile } = selfSignedFiles(certificateDirectory);
  log.warn("self-signed serving certificate has expired", {
    file: certificateFile,
    expired: new Date(notAfterMs).toISOString(),
    remedy: `delete it and ${basename(keyFile)}: the next start creates a new pair`,
  });
}

export function sameMaterial(a: TlsMaterial | undefined, b: TlsMaterial): boolean {
  if (a === undefined) return false;
  return a.certificate === b.certificate && a.key === b.key && a.clientAuthorities === b.clientAuthorities;
}

/**
 * Calls back when the material may have changed. Directories are watched, not files: replacing a file would end a watch
 * on it.
 */
export function watchMaterial(parts: ServingParts, settings: ServingSettings, onChange: () => void): Disposable {
  const { from, manager } = parts;
  const { files, clock } = from.ports;
  const { serving, clientAuthoritiesFile } = settings;
  const own = manager === undefined ? [serving?.certificateFile, serving?.keyFile] : [];
  const paths = [...own, clientAuthoritiesFile].filter((path) => path !== undefined);
  const issued = manager?.onChange(onChange);
  const watches = [...new Set(paths.map((path) => dirname(path)))].map((directory) => {
    const names = paths.filter((path) => dirname(path) === directory).map((path) => basename(path));
    return files.watch(directory, onChange, (error) => {
      from.log.info("cannot watch certificate files; polling instead", { directory, names, error: error.message });
    });
  });
  let timer: Disposable | undefined;
  const again = (): void => {
    timer = clock.timer("poll of certificate files", reloadMs, () => {
      onChange();
      again();
    });
  };
  if (paths.length > 0) again();
  return {
    [Symbol.dispose]: () => {
      issued?.[Symbol.dispose]();
      timer?.[Symbol.dispose]();
      for (const watch of watches) watch[Symbol.dispose]();
    },
  };
}
