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
 *     await server.wire.down(); server.wire.freeze();        // what networks do
 *
 * By hand: `sh scripts/node.sh test/apiserver/main.ts --port 6443 --kubeconfig-out /tmp/kubeconfig`.
 *
 * It is no kube-apiserver. See README.md beside this file for what it does, and what it does not.
 */
import { once } from "node:events";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { Admin } from "./admin.ts";
import { ApiError } from "./api-error.ts";
import { authenticate, type TokenAuthenticator, type User } from "./authn.ts";
import { type Authorizer, masters, refusal } from "./authz.ts";
import { CertificateAuthority, type Credentials } from "./certificates.ts";
import { discover } from "./discovery.ts";
import { Exchange } from "./exchange.ts";
import { kubeconfig } from "./kubeconfig.ts";
import { keepNamespaces } from "./namespaces.ts";
import { Registry } from "./registry.ts";
import { parseRequest, type RequestInfo } from "./request-info.ts";
import { RestHandler } from "./rest.ts";
import { Store } from "./store.ts";
import type { Watch } from "./watch.ts";
import { Wire } from "./wire.ts";

export interface TestApiServerOptions {
  /** Default: one that is free. */
  readonly port?: number;
  /** Between two bookmarks of a watch. Default: a minute. */
  readonly bookmarkMs?: number;
  /** How many changes of a resource a watch can go back. */
  readonly keptEvents?: number;
  /** Bearer tokens and whose they are. */
  readonly tokens?: Readonly<Record<string, User>>;
}

export class TestApiServer implements AsyncDisposable {
  /** Signs the server's certificate and those of its clients. */
  readonly authority = new CertificateAuthority("podwright-test-ca");
  readonly registry: Registry;
  readonly admin: Admin;
  /** The watches that are open now. */
  readonly watches = new Set<Watch>();
  readonly #http: Http2SecureServer;
  readonly #rest: RestHandler;
  readonly #authorizers: Authorizer[] = [masters];
  readonly #tokens: TokenAuthenticator[] = [];
  #wire: Wire | undefined;

  private constructor(options: TestApiServerOptions) {
    this.registry = new Registry(new Store(options.keptEvents));
    this.admin = new Admin(this.registry);
    this.#tokens.push((token) => options.tokens?.[token]);
    this.#rest = new RestHandler(this.registry, {
      bookmarkMs: options.bookmarkMs ?? 60_000,
      subresources: {},
      staleRevision: () => undefined,
      watching: (watch) => {
        this.watches.add(watch);
        return () => void this.watches.delete(watch);
      },
      shape: (_exchange, _resource, answer) => answer,
    });
    const { certificate, key } = this.authority.issue({
      subject: { commonName: "kube-apiserver" },
      names: ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"],
      usages: ["server"],
    });
    this.#http = createSecureServer({
      key,
      cert: certificate,
      ca: this.authority.certificate,
      // A bad client certificate is answered with 401, as by the real one, rather than by an alert.
      requestCert: true,
      rejectUnauthorized: false,
      allowHTTP1: true,
    });
    this.#http.on("request", (request, response) => void this.#serve(new Exchange(request, response)));
  }

  static async start(options: TestApiServerOptions = {}): Promise<TestApiServer> {
    const server = new TestApiServer(options);
    keepNamespaces(server.registry, server.authority.certificate);
    server.#http.listen(0, "127.0.0.1");
    await once(server.#http, "listening");
    server.#wire = new Wire((server.#http.address() as AddressInfo).port, options.port ?? 0);
    await server.#wire.up();
    return server;
  }

  /** The network in front of it. */
  get wire(): Wire {
    if (this.#wire === undefined) throw new Error("the server was not started");
    return this.#wire;
  }

  get url(): string {
    return `https://127.0.0.1:${this.wire.port}`;
  }

  /** A client certificate for a user. */
  credentials(
    user: string,
    groups: readonly string[] = [],
    validity: { readonly notBefore?: Date; readonly notAfter?: Date } = {},
  ): Credentials {
    return this.authority.issue({
      subject: { commonName: user, organizations: groups },
      usages: ["client"],
      ...validity,
    });
  }

  /** A kubeconfig with everything in it; the administrator's unless told. */
  kubeconfig(who: Credentials | { readonly token: string } = this.credentials("admin", ["system:masters"])): string {
    return kubeconfig(this.url, this.authority.certificate, who);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const watch of this.watches) watch.stop();
    await this.wire.down();
    this.#http.close();
  }

  async #serve(exchange: Exchange): Promise<void> {
    try {
      exchange.user = authenticate(exchange.socket, exchange.header("authorization"), this.#tokens);
      await this.#answer(exchange);
    } catch (error) {
      if (error instanceof ApiError) exchange.sendError(error);
      else exchange.sendError(new ApiError(500, "InternalError", `Internal error occurred: ${String(error)}`));
    }
  }

  async #answer(exchange: Exchange): Promise<void> {
    const path = exchange.url.pathname;
    if (/^\/(?:healthz|livez|readyz)(?:\/|$)/.test(path)) {
      return exchange.sendText(200, "ok", { "content-type": "text/plain" });
    }
    const discovered = exchange.method === "GET" ? discover(path) : undefined;
    if (discovered !== undefined) return exchange.send(200, discovered);
    const info = parseRequest(exchange.method, exchange.url);
    if (info === undefined) throw new ApiError(404, "NotFound", "the server could not find the requested resource");
    this.#authorize(exchange, info);
    return this.#rest.handle(exchange, info);
  }

  #authorize(exchange: Exchange, info: RequestInfo): void {
    const request = { ...info, user: exchange.user };
    if (this.#authorizers.some((allows) => allows(request))) return;
    const { group, resource, name } = info;
    const full = group === "" ? resource : `${resource}.${group}`;
    throw new ApiError(
      403,
      "Forbidden",
      `${full}${name === "" ? "" : ` ${JSON.stringify(name)}`} is forbidden: ${refusal(request)}`,
      {
        subject: { group, resource, name },
      },
    );
  }
}
