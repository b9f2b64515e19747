import { withDeadline } from "../base/deadline.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import {
  KubeConnectionError,
  type KubeLane,
  type KubeRequest,
  type KubeResponse,
  type KubeTransport,
} from "../ports/kube-api.ts";
import type { Processes } from "../ports/processes.ts";
import { type CertificateSource, Credentials, type Identity } from "./credentials.ts";
import { connectionError } from "./connection-error.ts";
import { connectTimeoutMs, type Endpoint, openTls, withinConnectTime } from "./endpoint.ts";
import { Http1Connections } from "./http1.ts";
import { defaultLiveness, Http2Connection, type Liveness, RefusedStreamError } from "./http2.ts";
import type { KubeAccess } from "./kubeconfig.ts";
import { proxyOf } from "./proxy.ts";

export interface TransportDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly processes: Processes;
  readonly userAgent: string;
  /** Where a proxy may be named. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Instead of the kubeconfig's credentials. */
  readonly clientCertificate?: CertificateSource;
}

/** Connections that one request waits for. */
const maxTries = 5;

/**
 * Connects to a cluster on demand: nothing is tried before, and broken connections are reopened.
 * @throws PodwrightError (bad input) for an invalid proxy in the environment
 */
export function openKubeTransport(
  access: KubeAccess,
  deps: TransportDependencies,
  liveness: Liveness = defaultLiveness,
): KubeTransport & Disposable {
  const credentials = new Credentials(access, deps);
  const lanes = new Map<KubeLane, Lane>();
  const lane = (name: KubeLane): Lane => {
    const known = lanes.get(name) ?? new Lane(deps.clock, liveness);
    lanes.set(name, known);
    return known;
  };
  const proxy = proxyOf(access, deps.environment ?? {});
  const url = new URL(access.server);
  const base = url.pathname.replace(/\/+$/u, "");
  return {
    async send(request) {
      const identity = await credentials.identity(request.signal);
      const { token } = identity;
      const headers = {
        "user-agent": deps.userAgent,
        ...request.headers,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      };
      const endpoint: Endpoint = {
        url,
        ca: await credentials.authority(),
        serverName: access.serverName,
        insecure: access.insecure,
        ...(proxy && { proxy }),
      };
      const whole = { ...request, path: `${base}${request.path}` };
      try {
        const response = await lane(request.lane).send(whole, headers, endpoint, identity);
        if (response.status === 401) credentials.refused(identity);
        // Without a known credential a server may treat the request as anonymous (system:anonymous).
        else if (response.status === 403) credentials.doubted();
        return response;
      } catch (error) {
        credentials.doubted();
        throw error;
      }
    },
    [Symbol.dispose]: () => {
      credentials.close();
      for (const each of lanes.values()) each.close();
    },
  };
}

/** Whom a connection trusts, and as whom it is trusted: PEM. */
interface Trust {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
}

/** The connections of one lane, all of one certificate. */
class Lane {
  readonly #clock: Clock;
  readonly #liveness: Liveness;
  readonly #closed = new AbortController();
  #trust: Trust | undefined;
  #http2: Http2Connection[] = [];
  /** Connections that accept no more requests, and may have running ones. */
  readonly #retired = new Set<Http2Connection>();
  #connecting: Promise<Http2Connection | Http1Connections> | undefined;
  #http1: Http1Connections | undefined;

  constructor(clock: Clock, liveness: Liveness) {
    this.#clock = clock;
    this.#liveness = liveness;
  }

  async send(
    request: KubeRequest,
    headers: Readonly<Record<string, string>>,
    endpoint: Endpoint,
    identity: Identity,
  ): Promise<KubeResponse> {
    request.signal.throwIfAborted();
    this.#renew({ ca: endpoint.ca, cert: identity.certificate?.cert });
    for (let tries = 1; ; tries++) {
      const connection = await this.#connection(endpoint, identity, request.signal);
      // It may have broken, or filled up, while others waited for it too.
      const usable = connection instanceof Http1Connections || (connection.isOpen && connection.hasRoom);
      if (!usable && tries < maxTries) continue;
      try {
        return await connection.send(request, headers);
      } catch (error) {
        if (!(error instanceof RefusedStreamError) || tries === maxTries) throw error;
      }
    }
  }

  /** Including those being opened: an untracked connection would keep the process alive. */
  close(): void {
    this.#closed.abort(new KubeConnectionError("the connections to the API server are closed"));
    for (const connection of [...this.#http2, ...this.#retired]) connection.close();
    this.#http1?.close();
  }

  /** A rotated certificate is used from the next request on; running requests finish over the old connections. */
  #renew(trust: Trust): void {
    if (this.#trust?.ca === trust.ca && this.#trust?.cert === trust.cert) return;
    this.#trust = trust;
    for (const connection of this.#http2) this.#retire(connection);
    this.#http2 = [];
    this.#http1?.retire();
    this.#http1 = undefined;
  }

  #retire(connection: Http2Connection): void {
    this.#retired.add(connection);
    connection.retire(() => this.#retired.delete(connection));
  }

  async #connection(
    endpoint: Endpoint,
    identity: Identity,
    signal: AbortSignal,
  ): Promise<Http2Connection | Http1Connections> {
    this.#closed.signal.throwIfAborted();
    if (this.#http1 !== undefined) return this.#http1;
    for (const connection of this.#http2) if (!connection.isOpen) this.#retire(connection);
    this.#http2 = this.#http2.filter(({ isOpen }) => isOpen);
    const free = this.#http2.find(({ hasRoom }) => hasRoom);
    if (free !== undefined) return free;
    if (endpoint.url.protocol === "http:") return (this.#http1 = new Http1Connections(endpoint, identity, this.#clock));
    // Concurrent callers wait for the same connection; a canceled caller leaves it to the others.
    const connecting = (this.#connecting ??= this.#connect(endpoint, identity));
    try {
      return await withDeadline(
        this.#clock,
        `a connection to API server ${endpoint.url.host}`,
        connectTimeoutMs,
        signal,
        () => connecting,
      );
    } catch (error) {
      signal.throwIfAborted();
      throw connectionError(endpoint, error);
    }
  }

  async #connect(endpoint: Endpoint, identity: Identity): Promise<Http2Connection | Http1Connections> {
    try {
      return await this.#open(endpoint, identity);
    } finally {
      this.#connecting = undefined;
    }
  }

  async #open(endpoint: Endpoint, identity: Identity): Promise<Http2Connection | Http1Connections> {
    const trust = this.#trust;
    const connection = await withinConnectTime(this.#clock, endpoint, this.#closed.signal, async (signal) => {
      const socket = await openTls(endpoint, identity, signal);
      if (socket.alpnProtocol === "h2") {
        const made = new Http2Connection(endpoint, socket, this.#clock, this.#liveness);
        await made.settle(signal);
        return made;
      }
      socket.destroy();
      return new Http1Connections(endpoint, identity, this.#clock);
    });
    if (trust !== this.#trust) {
      connection.close();
      throw new KubeConnectionError(`API server ${endpoint.url.host}: the client certificate has changed`);
    }
    if (connection instanceof Http2Connection) this.#http2.push(connection);
    else this.#http1 = connection;
    return connection;
  }
}
