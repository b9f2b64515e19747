import { basename, dirname } from "node:path/posix";
import type { ApiClient } from "../api-client/client.ts";
import { onAbort } from "../base/abort.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { version } from "../base/version.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import { type ServingSettings, servingSettings } from "../config/serving.ts";
import type { Node } from "../engine/node.ts";
import { selfSignedCertificate } from "../linux/certificates.ts";
import { systemHashing } from "../linux/hashing.ts";
import { type HttpsServer, serveHttps, type TlsMaterial } from "../linux/https-server.ts";
import { serveTcp } from "../linux/tcp-server.ts";
import { type Authenticator, type Authorizer, withAccess } from "../node-api/access.ts";
import { anonymous, byCertificate, byToken, parseTokenFile } from "../node-api/authenticators.ts";
import { allowKnown } from "../node-api/authorizers.ts";
import { byAccessReview, byTokenReview, type ReviewDependencies } from "../node-api/reviews.ts";
import { type NodeApiDependencies, nodeApi, readOnlyApi } from "../node-api/routes.ts";
import type { ApiServer } from "../ports/api-server.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeHandler } from "../ports/node-server.ts";
import type { Ports } from "../ports/ports.ts";

/** What the API is served from. */
export interface NodeApiParts {
  readonly ports: Ports;
  readonly log: Logger;
  readonly cri: Cri;
  readonly configuration: KubeletConfiguration;
  readonly nodeName: string;
  readonly hostIPs: readonly string[];
  readonly rootDirectory: string;
  /** Where a certificate that podwright makes is kept; upstream's `--cert-dir`. */
  readonly certificateDirectory: string;
  /** Tokens of clients, for a node without a cluster; undefined: none. */
  readonly tokenFile: string | undefined;
  /** The API server, which knows clients and what they may; undefined: there is none. */
  readonly apiClient: ApiClient | undefined;
}

/** A port that is taken, a certificate that is not there yet: tried again after this. */
const retryMs = 5000;
/** Files that were replaced are noticed at once where the kernel tells, and after this in any case. */
const reloadMs = 60_000;
const maxFileBytes = 1024 * 1024;
const generatedName = "kubelet";

/**
 * Serves the kubelet's API until the signal aborts. What keeps it from being served is logged and tried again: it keeps
 * no pod from running.
 * @throws PodwrightError (bad input) at once for settings that can't be meant
 */
export async function serveNodeApi(parts: NodeApiParts, node: Node, signal: AbortSignal): Promise<void> {
  const { log, configuration } = parts;
  const settings = servingSettings(configuration);
  if (settings === undefined) return;
  const deps = apiDependencies(parts, settings, node);
  await Promise.all([
    serveReadOnly(parts, settings, deps, signal),
    servePrivately(parts, settings, deps, signal).catch((error: unknown) => {
      if (!(error instanceof PodwrightError)) throw error;
      log.error("the kubelet's API is not served", { error: error.message, remedy: error.remedy ?? "" });
    }),
  ]);
}

function apiDependencies(parts: NodeApiParts, settings: ServingSettings, node: Node): NodeApiDependencies {
  const { ports, configuration } = parts;
  return {
    clock: ports.clock,
    files: ports.files,
    store: ports,
    cri: parts.cri,
    pods: () => node.nodePods(),
    health: () => node.health(),
    configuration: { kind: "KubeletConfiguration", apiVersion: "kubelet.config.k8s.io/v1beta1", ...configuration },
    version,
    logsDirectory: "/var/log",
    checkpointDirectory: `${parts.rootDirectory}/checkpoints`,
    debugging: settings.debugging,
    systemLogs: settings.systemLogs,
  };
}

async function serveReadOnly(
  { ports, log }: NodeApiParts,
  { host, readOnlyPort }: ServingSettings,
  deps: NodeApiDependencies,
  signal: AbortSignal,
): Promise<void> {
  if (readOnlyPort === 0) return;
  const handler = readOnlyApi(deps);
  await keepServing(ports, log, "the read-only API", signal, async () => {
    return await serveTcp({ host, port: readOnlyPort }, handler);
  });
}

async function servePrivately(
  parts: NodeApiParts,
  settings: ServingSettings,
  deps: NodeApiDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { ports, log } = parts;
  const { host, port, minVersion, ciphers, streamingIdleMs } = settings;
  const handler = await guarded(parts, settings, nodeApi(deps));
  const onError = (error: unknown, request: object): void => {
    log.error("request failed", { ...request, error: String(error) });
  };
  let server: HttpsServer | undefined;
  let material: TlsMaterial | undefined;
  const reload = async (): Promise<void> => {
    // Before there is a server its start reads the files, and may be making them.
    if (server === undefined) return;
    const next = await tlsMaterial(parts, settings);
    if (sameMaterial(material, next)) return;
    server.useTls(next);
    material = next;
    log.info("the kubelet's API serves with changed certificates");
  };
  using _watch = watchFiles(parts, settings, () => void reload().catch((error: unknown) => complain(log, error)));
  await keepServing(ports, log, "the kubelet's API", signal, async () => {
    material = await tlsMaterial(parts, settings);
    const options = { host, port, minVersion, ciphers, streamingIdleMs, maxBodyBytes: maxFileBytes, onError };
    server = await serveHttps(handler, material, options);
    log.info("the kubelet's API is served", { address: server.address });
    return server;
  });
}

function complain(log: Logger, error: unknown): void {
  log.error("changed certificates can't be used; the ones before stay", { error: errorMessage(error) });
}

/** Serves as soon as that can be done, until the signal aborts. */
async function keepServing(
  { clock }: Ports,
  log: Logger,
  what: string,
  signal: AbortSignal,
  serve: () => Promise<ApiServer>,
): Promise<void> {
  let server: ApiServer | undefined;
  while (server === undefined && !signal.aborted) {
    try {
      server = await serve();
    } catch (error) {
      log.error(`failed to serve ${what}`, { error: errorMessage(error) });
      await clock.sleep(`another try to serve ${what}`, retryMs, signal).catch(() => {});
    }
  }
  const end = Promise.withResolvers<void>();
  using _end = onAbort(signal, end.resolve);
  await end.promise;
  await server?.close();
}

/** @throws PodwrightError when nobody can say who clients are or what they may */
async function guarded(parts: NodeApiParts, settings: ServingSettings, handler: NodeHandler): Promise<NodeHandler> {
  const { ports, apiClient, tokenFile } = parts;
  const reviews = apiClient && { client: apiClient, clock: ports.clock, hashing: systemHashing };
  const authenticators: Authenticator[] = [byCertificate];
  if (tokenFile !== undefined) {
    const text = new TextDecoder().decode(await ports.files.read(tokenFile, maxFileBytes));
    authenticators.push(byToken(systemHashing, parseTokenFile(text, tokenFile), reviews === undefined));
  }
  if (settings.tokenReview && reviews) authenticators.push(byTokenReview(reviews, settings.tokenReview.ttlMs));
  if (settings.anonymous) authenticators.push(anonymous);
  return withAccess(handler, authenticators, authorizer(parts.nodeName, settings, reviews), parts.log);
}

function authorizer(
  nodeName: string,
  { accessReview }: ServingSettings,
  reviews: ReviewDependencies | undefined,
): Authorizer {
  if (accessReview === undefined) return allowKnown;
  if (reviews !== undefined) return byAccessReview(reviews, nodeName, accessReview);
  const files = "authentication.x509.clientCAFile or --token-auth-file";
  throw new PodwrightError(ExitCode.badInput, "authorization.mode Webhook asks an API server, and there is none", {
    remedy: `set authorization.mode to AlwaysAllow, and say by ${files} who is known`,
  });
}

/** From the files of the configuration, or from a pair in the certificate directory, which is made when it is missing. */
async function tlsMaterial(parts: NodeApiParts, settings: ServingSettings): Promise<TlsMaterial> {
  const { ports, certificateDirectory, nodeName, hostIPs } = parts;
  const { files, clock } = ports;
  const read = async (path: string): Promise<string> => {
    return new TextDecoder().decode(await files.read(path, maxFileBytes));
  };
  const { serving, clientAuthoritiesFile } = settings;
  const clientAuthorities = clientAuthoritiesFile === undefined ? undefined : await read(clientAuthoritiesFile);
  if (serving !== undefined) {
    const certificate = await read(serving.certificateFile);
    return { certificate, key: await read(serving.keyFile), clientAuthorities };
  }
  const paths = {
    certificate: `${certificateDirectory}/${generatedName}.crt`,
    key: `${certificateDirectory}/${generatedName}.key`,
  };
  const [certificate, key] = await Promise.all([files.stat(paths.certificate), files.stat(paths.key)]);
  if (certificate === undefined || key === undefined) {
    const made = selfSignedCertificate([nodeName, ...hostIPs], new Date(clock.now()));
    await files.makeDirectory(certificateDirectory, 0o755);
    await files.writeAtomic(paths.key, made.key, 0o600);
    await files.writeAtomic(paths.certificate, made.certificate, 0o644);
  }
  return { certificate: await read(paths.certificate), key: await read(paths.key), clientAuthorities };
}

function sameMaterial(a: TlsMaterial | undefined, b: TlsMaterial): boolean {
  return a?.certificate === b.certificate && a.key === b.key && a.clientAuthorities === b.clientAuthorities;
}

/** Directories are watched, not files: whoever replaces a file whole would blind a watch on it. */
function watchFiles({ ports, log }: NodeApiParts, settings: ServingSettings, onChange: () => void): Disposable {
  const { files, clock } = ports;
  const { serving, clientAuthoritiesFile } = settings;
  const paths = [serving?.certificateFile, serving?.keyFile, clientAuthoritiesFile].filter(
    (path) => path !== undefined,
  );
  const watches = [...new Set(paths.map((path) => dirname(path)))].map((directory) => {
    const names = paths.filter((path) => dirname(path) === directory).map((path) => basename(path));
    return files.watch(directory, onChange, (error) => {
      log.info("certificates are looked at now and then only", { directory, names, error: error.message });
    });
  });
  let timer: Disposable | undefined;
  const again = (): void => {
    timer = clock.timer("certificates to be looked at", reloadMs, () => {
      onChange();
      again();
    });
  };
  if (paths.length > 0) again();
  return {
    [Symbol.dispose]: () => {
      timer?.[Symbol.dispose]();
      for (const watch of watches) watch[Symbol.dispose]();
    },
  };
}
