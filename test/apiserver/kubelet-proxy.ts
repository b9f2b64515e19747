import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { request } from "node:https";
import type { Duplex } from "node:stream";
import { connect } from "node:tls";
import { ApiError, badRequest, notFound } from "./api-error.ts";
import type { Credentials } from "./certificates.ts";
import type { Exchange } from "./exchange.ts";
import { isImpersonation } from "./impersonation.ts";
import { type ApiObject, itemsAt, numberAt, textAt } from "./objects.ts";
import type { RequestInfo } from "./request-info.ts";
import type { Store } from "./store.ts";

/** A request to a kubelet: its address, and the path with query. */
export interface KubeletRequest {
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

/** The kubelet's names of exec and attach options. */
const streamFlags = [
  ["stdin", "input"],
  ["stdout", "output"],
  ["stderr", "error"],
  ["tty", "tty"],
] as const;
const logOptions = [
  "follow",
  "previous",
  "timestamps",
  "sinceSeconds",
  "sinceTime",
  "tailLines",
  "limitBytes",
  "stream",
];
/** Hop-by-hop headers, and those for this server only. */
const hopHeaders = new Set(["authorization", "connection", "keep-alive", "transfer-encoding", "upgrade", "host"]);

function containerOf(pod: ApiObject, asked: string | null): string {
  const lists = ["initContainers", "containers", "ephemeralContainers"];
  const names = lists.flatMap((list) => itemsAt(pod, `spec.${list}`).map((each) => textAt(each, "name")));
  const { name } = pod.metadata;
  if (asked === null || asked === "") {
    const containers = itemsAt(pod, "spec.containers");
    if (containers.length === 1) return textAt(containers[0], "name");
    throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${names.join(" ")}]`);
  }
  if (!names.includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`);
  return asked;
}

function passedHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(
    ([name]) => !hopHeaders.has(name) && !name.startsWith(":") && !isImpersonation(name),
  );
  return Object.fromEntries(kept.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])));
}

/** Kubelets' Locations are relative, so they stay below this server's path. */
function answeredHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const { "content-type": type = "text/plain", "content-encoding": encoding, location } = headers;
  return { "content-type": type, ...(encoding && { "content-encoding": encoding }), ...(location && { location }) };
}

/**
 * Forwards requests for logs, commands, ports and metrics to the node's kubelet, like the API server. Upgraded
 * connections (SPDY, WebSocket) are forwarded byte by byte. Kubelets' certificates are verified only with an authority
 * (kube-apiserver's `--kubelet-certificate-authority`).
 */
export class KubeletProxy {
  readonly #store: Store;
  readonly #identity: Credentials;
  readonly #authority: string | undefined;

  /**
   * @param identity the client certificate that kubelets see
   * @param authority PEM of the authority of kubelets' certificates
   */
  constructor(store: Store, identity: Credentials, authority: string | undefined) {
    this.#store = store;
    this.#identity = identity;
    this.#authority = authority;
  }

  /**
   * The kubelet's request for a client's; undefined if kubelets do not serve it.
   * @throws ApiError 404 for an unknown pod or node, 400 for an unknown container or an unbound pod
   */
  locate(info: RequestInfo, query: URLSearchParams): KubeletRequest | undefined {
    const { resource, subresource, name, namespace, rest } = info;
    if (resource === "nodes" && subresource === "proxy") {
      const text = query.toString();
      return { ...this.#addressOf(name), path: `/${rest}${text === "" ? "" : `?${text}`}` };
    }
    if (resource !== "pods" || !["log", "exec", "attach", "portforward"].includes(subresource)) return undefined;
    const pod = this.#store.get("pods", `${namespace}/${name}`);
    if (pod === undefined) throw notFound({ group: "", resource: "pods", name });
    const node = textAt(pod, "spec.nodeName");
    const parameters = new URLSearchParams();
    let path = `/portForward/${namespace}/${name}`;
    if (subresource === "portforward") {
      for (const port of query.getAll("ports")) parameters.append("port", port);
    } else {
      const container = containerOf(pod, query.get("container"));
      path = `/${subresource === "log" ? "containerLogs" : subresource}/${namespace}/${name}/${container}`;
    }
    if (subresource === "log") {
      for (const option of logOptions) {
        const value = query.get(option);
        if (value !== null && value !== "false") parameters.append(option, value);
      }
    } else {
      for (const [option, short] of streamFlags) {
        if (["true", "1"].includes(query.get(option) ?? "")) parameters.append(short, "1");
      }
      for (const command of query.getAll("command")) parameters.append("command", command);
    }
    if (node === "") throw badRequest(`pod ${name} does not have a host assigned`);
    const text = parameters.toString();
    return { ...this.#addressOf(node), path: `${path}${text === "" ? "" : `?${text}`}` };
  }

  /** Forwards a request, and streams the response back. */
  async pass(exchange: Exchange, target: KubeletRequest): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sent = request({
      ...this.#connection(target),
      method: exchange.method,
      path: target.path,
      headers: passedHeaders(exchange.headers),
    });
    exchange.onClose(() => {
      sent.destroy();
      resolve();
    });
    sent.on("error", (error) => reject(this.#unreachable(target, error)));
    sent.on("response", (response) => {
      const status = response.statusCode ?? 502;
      if (status >= 400 && target.path.startsWith("/containerLogs/")) {
        refusedLog(status, response).then(reject, reject);
        return;
      }
      exchange.startStream(status, answeredHeaders(response.headers));
      response.on("data", (chunk: Buffer) => exchange.write(chunk));
      response.on("error", () => exchange.reset());
      response.on("end", () => {
        exchange.endStream();
        resolve();
      });
    });
    for await (const chunk of exchange.chunks()) sent.write(chunk);
    sent.end();
    await promise;
  }

  /** Forwards an upgrade request and all following data in both directions. */
  upgrade(
    from: {
      readonly method: string;
      readonly headers: IncomingHttpHeaders;
      readonly socket: Duplex;
      readonly head: Buffer;
    },
    target: KubeletRequest,
  ): void {
    const { socket, head } = from;
    const upstream = connect({ ...this.#connection(target), ALPNProtocols: ["http/1.1"] }, () => {
      const headers = { ...passedHeaders(from.headers), connection: "Upgrade", upgrade: from.headers.upgrade ?? "" };
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      upstream.write(`${from.method} ${target.path} HTTP/1.1\r\nhost: ${target.host}\r\n${lines.join("")}\r\n`);
      upstream.write(head);
      upstream.pipe(socket);
      socket.pipe(upstream);
    });
    upstream.on("error", (error) => {
      // Nothing has been written to the client before the kubelet's response.
      if (upstream.bytesRead === 0) refuseUpgrade(socket, this.#unreachable(target, error));
      else socket.destroy();
    });
    upstream.on("close", () => socket.end());
    socket.on("error", () => upstream.destroy());
    socket.on("close", () => upstream.destroy());
  }

  /** A kubelet's response to a GET. @throws ApiError if it is unreachable or refuses */
  async read(node: string, path: string): Promise<string> {
    const target = { ...this.#addressOf(node), path };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = request({ ...this.#connection(target), path });
    sent.on("error", (error) => reject(this.#unreachable(target, error)));
    sent.on("response", resolve);
    sent.end();
    const response = await promise;
    let text = "";
    for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
    if (response.statusCode === 200) return text;
    throw this.#unreachable(target, new Error(`${response.statusCode} ${text}`));
  }

  #connection({ host, port }: KubeletRequest): object {
    const trust = this.#authority === undefined ? { rejectUnauthorized: false } : { ca: this.#authority };
    return { host, port, cert: this.#identity.certificate, key: this.#identity.key, ...trust };
  }

  #addressOf(node: string): Pick<KubeletRequest, "host" | "port"> {
    const object = this.#store.get("nodes", node);
    if (object === undefined) throw notFound({ group: "", resource: "nodes", name: node });
    const addresses = itemsAt(object, "status.addresses");
    const address = addresses.find(({ type }) => type === "InternalIP") ?? addresses[0];
    if (address === undefined) throw badRequest(`no preferred addresses found for node ${node}`);
    const port = numberAt(object, "status.daemonEndpoints.kubeletEndpoint.Port") ?? 10_250;
    return { host: textAt(address, "address"), port };
  }

  #unreachable({ host, port, path }: KubeletRequest, error: Error): ApiError {
    return new ApiError(502, "BadGateway", `error dialing backend: https://${host}:${port}${path}: ${error.message}`);
  }
}

/** The kubelet's error, in the API server's format. */
async function refusedLog(status: number, response: IncomingMessage): Promise<ApiError> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return new ApiError(status, status === 400 ? "BadRequest" : status === 404 ? "NotFound" : "InternalError", text);
}

/** Responds to a refused upgrade. */
export function refuseUpgrade(socket: Duplex, error: ApiError): void {
  const body = JSON.stringify(error.toStatus());
  socket.end(
    `HTTP/1.1 ${error.code} ${error.reason}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}
