import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { ServingSettings } from "../config/serving.ts";
import type { Node } from "../engine/node.ts";
import { type HttpsServer, serveHttps, type TlsMaterial } from "../linux/servers/https-server.ts";
import { pageAssets } from "../linux/http/page-assets.ts";
import { serveTcp } from "../linux/servers/tcp-server.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import { type NodeApiDependencies, nodeApi, readOnlyApi } from "../node-api/routes.ts";
import { type NodeFigures, withFigures } from "../node-api/stats-routes.ts";
import { pageRoutes, withPage } from "../page/routes.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeHandler } from "../ports/node-server.ts";
import { apiDependencies, type ApiSubject } from "./api-dependencies.ts";
import { keepServing } from "./keep-serving.ts";
import { type AccessParts, guarded, openToEverybody } from "./node-access.ts";
import { sameMaterial, type ServingParts, tlsMaterial, warnOfExpired, watchMaterial } from "./serving-certificates.ts";

/** The dependencies of the API. */
export interface NodeApiParts {
  readonly subject: ApiSubject;
  readonly certificates: ServingParts;
  readonly access: Pick<AccessParts, "tokenFile" | "apiClient">;
  readonly cri: Cri;
  /** Settings of the server; undefined: none. */
  readonly served: ServingSettings | undefined;
  /** Whether the node page is served too. */
  readonly servesPage: boolean;
  /** The node's monitoring endpoints. */
  readonly figures: NodeFigures;
  readonly metrics: NodeMetrics;
}

const maxFileBytes = 1024 * 1024;

/** Serves the kubelet's API until the signal aborts. Failures are logged and retried: they keep no pod from running. */
export async function serveNodeApi(parts: NodeApiParts, node: Node, signal: AbortSignal): Promise<void> {
  const { served: settings, subject, cri } = parts;
  const { ports, log } = parts.certificates.from;
  if (settings === undefined) return;
  const deps = apiDependencies({ ports, cri, subject }, node, parts.servesPage);
  const own = withFigures(parts.figures, ports.compression, nodeApi(deps));
  const handler = parts.servesPage ? withPage(own, pageRoutes(node.page, pageAssets)) : own;
  await Promise.all([
    serveReadOnly(parts, settings, deps, signal),
    servePrivately(parts, settings, handler, signal).catch((error: unknown) => {
      if (!(error instanceof PodwrightError)) throw error;
      log.error("kubelet API is not served", { error: error.message, remedy: error.remedy ?? "" });
    }),
  ]);
}

async function serveReadOnly(
  { certificates, figures, metrics }: NodeApiParts,
  { host, readOnlyPort }: ServingSettings,
  deps: NodeApiDependencies,
  signal: AbortSignal,
): Promise<void> {
  const { ports, log } = certificates.from;
  if (readOnlyPort === 0) return;
  const handler = metrics.http.measuredReadOnly(withFigures(figures, ports.compression, readOnlyApi(deps)));
  await keepServing({ clock: ports.clock, log }, "the read-only kubelet API", signal, async () => {
    return await serveTcp({ host, port: readOnlyPort }, handler);
  });
}

async function servePrivately(
  parts: NodeApiParts,
  settings: ServingSettings,
  api: NodeHandler,
  signal: AbortSignal,
): Promise<void> {
  const { certificates, access } = parts;
  const { ports, log, nodeName, configuration } = certificates.from;
  const { host, port, minVersion, ciphers, curves, streamingIdleMs } = settings;
  if (configuration.serverTLSBootstrap === true && certificates.manager === undefined) {
    throw new PodwrightError(ExitCode.badInput, "serverTLSBootstrap requires an API server", {
      remedy: "unset it, and either set tlsCertFile and tlsPrivateKeyFile or use the self-signed certificate",
    });
  }
  const handler = parts.metrics.http.measured(
    await guarded({ ports, log, nodeName, tokenFile: access.tokenFile, apiClient: access.apiClient }, settings, api),
  );
  const onError = (error: unknown, request: object): void => {
    log.error("request failed", { ...request, error: String(error) });
  };
  let server: HttpsServer | undefined;
  let material: TlsMaterial | undefined;
  const reload = async (): Promise<void> => {
    // Without a server yet, its start reads the files, and may be creating them.
    if (server === undefined) return;
    const next = await tlsMaterial(certificates, settings);
    if (sameMaterial(material, next)) return;
    server.useTls(next);
    material = next;
    log.info("kubelet API reloaded its certificates");
  };
  using _watch = watchMaterial(
    certificates,
    settings,
    () => void reload().catch((error: unknown) => complain(log, error)),
  );
  await keepServing({ clock: ports.clock, log }, "the kubelet API", signal, async () => {
    material = await tlsMaterial(certificates, settings);
    const options = { host, port, minVersion, ciphers, curves, streamingIdleMs, maxBodyBytes: maxFileBytes, onError };
    server = await serveHttps(handler, material, options);
    warnOfExpired(certificates, settings, material);
    log.info("serving the kubelet API", { address: server.address });
    if (settings.everybody) {
      log.warn("kubelet API is open to everyone", { detail: openToEverybody.detail, remedy: openToEverybody.remedy });
    }
    return server;
  });
}

function complain(log: Logger, error: unknown): void {
  log.error("cannot use the changed certificates; keeping the previous ones", { error: errorMessage(error) });
}
