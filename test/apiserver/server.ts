/**
 * An API server for tests, in the test's process:
 *
 *     await using server = await TestApiServer.start();
 *     server.url                                             // https://127.0.0.1:PORT; HTTP/1.1 and HTTP/2 by ALPN
 *     server.authority.certificate                           // PEM of the CA that signs it and its clients
 *     server.credentials("system:node:node1", ["system:nodes"])   // a client certificate and its key, PEM
 *     server.kubeconfig(server.credentials("admin", ["system:masters"]))
 *     server.admin.create({ apiVersion: "v1", kind: "Pod", … });  // as the administrator, without HTTP
 *     await server.admin.until("pods", "default/web", (pod) => …);
 *     server.faults.add({ verb: "patch", resource: "pods" }, { code: 429, retryAfterSeconds: 1 }, 3);
 *     server.cutWatches({ resource: "pods" });
 *     await server.wire.down(); server.wire.freeze();        // what networks do
 *     server.requests.list("patch pods/status");             // what came
 *
 * By hand: `sh scripts/node.sh test/apiserver/main.ts --port 6443 --kubeconfig-out /tmp/kubeconfig`.
 *
 * It is not a kube-apiserver: README.md beside this file says what it supports.
 */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { Access } from "./access.ts";
import { Admin } from "./admin.ts";
import { ApiError, badRequest } from "./api-error.ts";
import type { User } from "./authn.ts";
import { CertificateAuthority, type Credentials } from "./certificates.ts";
import { discover } from "./discovery.ts";
import { Exchange } from "./exchange.ts";
import { Faults } from "./faults.ts";
import { collectGarbage } from "./garbage.ts";
import { kubeconfig } from "./kubeconfig.ts";
import { KubeletProxy, refuseUpgrade } from "./kubelet-proxy.ts";
import { MetricsApi } from "./metrics-api.ts";
import { keepNamespaces } from "./namespaces.ts";
import { watchNodes } from "./node-lifecycle.ts";
import { NodeRestriction } from "./node-restriction.ts";
import { isFields } from "./objects.ts";
import { describeApi } from "./openapi.ts";
import { PodAdmission } from "./pod-admission.ts";
import { Registry } from "./registry.ts";
import { parseRequest, type RequestInfo } from "./request-info.ts";
import { RequestLog } from "./request-log.ts";
import { RestHandler } from "./rest.ts";
import { answerReview } from "./reviews.ts";
import { schedulePods } from "./scheduler.ts";
import { signRequests, type SignerOptions } from "./signer.ts";
import { Store } from "./store.ts";
import { subresourceHandlers } from "./subresources.ts";
import { shapeAnswer } from "./tables.ts";
import type { Watch } from "./watch.ts";
import { Wire } from "./wire.ts";

export interface TestApiServerOptions extends SignerOptions {
  /** Default: a free one. */
  readonly port?: number;
  /** Interval of a watch's bookmarks. Default: a minute. */
  readonly bookmarkMs?: number;
  /** Length of a resource's history, from which watches can start. */
  readonly keptEvents?: number;
  /** Users by bearer token. */
  readonly tokens?: Readonly<Record<string, User>>;
  /** Time without a lease or status after which a node becomes unknown (50 s in a real cluster). Default: never. */
  readonly nodeSilenceMs?: number;
  /** Whether to run the scheduler. Default: yes. */
  readonly schedules?: boolean;
  /** For the server's certificate. */
  readonly servingValidity?: Validity;
  /** Whether kubelets need a certificate of this authority. Default: no, as in most clusters. */
  readonly verifiesKubelets?: boolean;
}

interface Validity {
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

export class TestApiServer implements AsyncDisposable {
  /** The authority of the server and its clients. */
  readonly authority = new CertificateAuthority("podwright-test-ca");
  readonly registry: Registry;
  readonly admin: Admin;
  readonly access: Access;
  readonly faults = new Faults();
  readonly requests = new RequestLog();
  /** Open watches. */
  readonly watches = new Set<Watch>();
  readonly #http: Http2SecureServer;
  readonly #rest: RestHandler;
  readonly #kubelets: KubeletProxy;
  readonly #metrics: MetricsApi;
  /** HTTP/2 connections. */
  readonly #sessions = new Set<ServerHttp2Session>();
  #nodes: Disposable | undefined;
  #staleRevision: number | undefined;
  #wire: Wire | undefined;

  private constructor(options: TestApiServerOptions) {
    const store = new Store(options.keptEvents);
    this.registry = new Registry(store);
    this.admin = new Admin(this.registry);
    this.access = new Access(store, options.tokens ?? {});
    const restriction = new NodeRestriction(store);
    const pods = new PodAdmission(store);
    this.registry.admitBy(pods.admit);
    this.registry.admitBy(restriction.admit);
    this.#rest = new RestHandler(this.registry, {
      bookmarkMs: options.bookmarkMs ?? 60_000,
      subresources: subresourceHandlers(this.registry, this.access),
      staleRevision: () => this.#staleRevision,
      watching: (watch) => {
        this.watches.add(watch);
        return () => void this.watches.delete(watch);
      },
      shape: shapeAnswer,
    });
    this.#kubelets = new KubeletProxy(
      store,
      this.credentials("kube-apiserver-kubelet-client", ["system:masters"]),
      options.verifiesKubelets === true ? this.authority.certificate : undefined,
    );
    this.#metrics = new MetricsApi(store, this.#kubelets);
    this.#http = this.#listener(options.servingValidity);
    this.#control(options);
  }

  static async start(options: TestApiServerOptions = {}): Promise<TestApiServer> {
    const server = new TestApiServer(options);
    server.#http.listen(0, "127.0.0.1");
    await once(server.#http, "listening");
    server.#wire = new Wire((server.#http.address() as AddressInfo).port, options.port ?? 0);
    await server.#wire.up();
    return server;
  }

  /** The network in front of the server. */
  get wire(): Wire {
    if (this.#wire === undefined) throw new Error("the server was not started");
    return this.#wire;
  }

  get url(): string {
    return `https://127.0.0.1:${this.wire.port}`;
  }

  /** A client certificate for a user. */
  credentials(user: string, groups: readonly string[] = [], validity: Validity = {}): Credentials {
    const subject = { commonName: user, organizations: groups };
    return this.authority.issue({ subject, usages: ["client"], ...validity });
  }

  /** A self-contained kubeconfig; by default the administrator's. */
  kubeconfig(who: Credentials | { readonly token: string } = this.credentials("admin", ["system:masters"])): string {
    return kubeconfig(this.url, this.authority.certificate, who);
  }

  /** Ends watches as at their timeout, with an error event or abruptly, or silences them. */
  cutWatches(
    which: { readonly resource?: string } = {},
    how: { readonly error?: ApiError; readonly abruptly?: boolean; readonly silently?: boolean } = {},
  ): void {
    for (const watch of this.watches) {
      if (which.resource !== undefined && watch.scope.resource.plural !== which.resource) continue;
      if (how.silently === true) watch.silence();
      else watch.end(how);
    }
  }

  /** Sends GOAWAY to HTTP/2 clients, like a server that shuts down; open streams continue. */
  goAway(): void {
    for (const session of this.#sessions) session.close();
  }

  /**
   * Freezes reads of any revision (`resourceVersion=0`) at the present state, like a server with a lagging cache, until
   * the result is disposed of.
   */
  lagReads(): Disposable {
    this.#staleRevision = this.registry.store.revision;
    return { [Symbol.dispose]: () => void (this.#staleRevision = undefined) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#nodes?.[Symbol.dispose]();
    for (const watch of this.watches) watch.stop();
    await this.wire.down();
    this.#http.close();
  }

  #listener(validity: Validity = {}): Http2SecureServer {
    const { certificate, key } = this.authority.issue({
      subject: { commonName: "kube-apiserver" },
      names: ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"],
      usages: ["server"],
      ...validity,
    });
    const http = createSecureServer({
      key,
      cert: certificate,
      ca: this.authority.certificate,
      // Like the real server: 401 for an invalid client certificate instead of a TLS alert.
      requestCert: true,
      rejectUnauthorized: false,
      allowHTTP1: true,
      // The real server's limit: more concurrent requests need another connection.
      settings: { maxConcurrentStreams: 100 },
    });
    http.on("session", (session) => {
      this.#sessions.add(session);
      session.once("close", () => this.#sessions.delete(session));
    });
    http.on("upgrade", (request: IncomingMessage, socket: TLSSocket, head: Buffer) => {
      this.#upgrade(request, socket, head);
    });
    http.on("request", (request, response) => void this.#serve(new Exchange(request, response)));
    return http;
  }

  /** Starts the controllers. */
  #control(options: TestApiServerOptions): void {
    collectGarbage(this.registry);
    this.#nodes = watchNodes(this.registry.store, options.nodeSilenceMs ?? Number.POSITIVE_INFINITY);
    keepNamespaces(this.registry, this.authority.certificate);
    signRequests(this.registry.store, this.authority, options);
    if (options.schedules !== false) schedulePods(this.registry);
  }

  async #serve(exchange: Exchange): Promise<void> {
    const info = parseRequest(exchange.method, exchange.url);
    this.requests.add(exchange, info);
    try {
      exchange.user = this.access.authenticate(exchange.socket, exchange.header("authorization"), exchange.rawHeaders);
      if (await this.faults.meet(exchange, info)) await this.#answer(exchange, info);
    } catch (error) {
      if (error instanceof ApiError) exchange.sendError(error);
      else exchange.sendError(new ApiError(500, "InternalError", `Internal error occurred: ${String(error)}`));
    }
  }

  async #answer(exchange: Exchange, info: RequestInfo | undefined): Promise<void> {
    const path = exchange.url.pathname;
    if (info !== undefined) {
      this.access.require({ ...info, user: exchange.user });
      const kubelet = this.#kubelets.locate(info, exchange.query);
      if (kubelet !== undefined) return this.#kubelets.pass(exchange, kubelet);
      const metrics = await this.#metrics.answer(info);
      if (metrics !== undefined) return exchange.send(200, metrics);
      if (!(await this.#review(exchange, info))) await this.#rest.handle(exchange, info);
      return;
    }
    this.access.require({
      user: exchange.user,
      verb: exchange.method === "GET" ? "get" : exchange.method.toLowerCase(),
      path,
      ...{ group: "", resource: "", subresource: "", namespace: "", name: "", fieldSelector: "" },
    });
    if (/^\/(?:healthz|livez|readyz)(?:\/|$)/.test(path)) {
      return exchange.sendText(200, "ok", { "content-type": "text/plain" });
    }
    const discovered = discover(path) ?? describeApi(path);
    if (discovered === undefined) {
      return exchange.sendText(404, "404 page not found\n", { "content-type": "text/plain; charset=utf-8" });
    }
    exchange.send(200, discovered);
  }

  /** Connects the client with a kubelet: `kubectl exec`, `attach`, `port-forward`. */
  #upgrade(request: IncomingMessage, socket: TLSSocket, head: Buffer): void {
    try {
      const { method = "GET", headers } = request;
      const url = new URL(request.url ?? "/", this.url);
      const info = parseRequest(method, url);
      const user = this.access.authenticate(socket, headers.authorization, request.rawHeaders);
      if (info !== undefined) this.access.require({ ...info, user });
      const kubelet = info === undefined ? undefined : this.#kubelets.locate(info, url.searchParams);
      if (kubelet === undefined) throw badRequest("this path is no connection to a kubelet");
      this.#kubelets.upgrade({ method, headers, socket, head }, kubelet);
    } catch (error) {
      refuseUpgrade(socket, error instanceof ApiError ? error : new ApiError(500, "InternalError", String(error)));
    }
  }

  /** @returns whether it was a review, which now has its response */
  async #review(exchange: Exchange, info: RequestInfo): Promise<boolean> {
    if (!/^auth(?:entication|orization)\.k8s\.io$/.test(info.group) || info.verb !== "create") return false;
    const review = await exchange.body();
    if (!isFields(review)) throw badRequest("the body of the request is not an object");
    const answer = answerReview(info.resource, review, exchange.user, this.access);
    if (answer !== undefined) exchange.send(201, answer);
    return answer !== undefined;
  }
}
