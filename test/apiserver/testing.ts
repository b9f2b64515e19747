import { once } from "node:events";
import { Agent, request } from "node:https";
import type { IncomingMessage } from "node:http";
import type { Credentials } from "./certificates.ts";
import { type Fields, isFields, type Json } from "./objects.ts";

export interface Answer {
  readonly code: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Fields;
  readonly text: string;
}

interface RequestOptions {
  readonly body?: Json;
  readonly contentType?: string;
  readonly accept?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

/** A server's address and authority. */
interface Served {
  readonly url: string;
  readonly authority: { readonly certificate: string };
}

/** A plain HTTP/1.1 client for the server's own tests: one user, no retries. */
export class TestClient implements Disposable {
  readonly #server: Served;
  readonly #agent: Agent;

  /** @param who undefined: no certificate */
  constructor(server: Served, who?: Credentials) {
    this.#server = server;
    const identity = who === undefined ? {} : { cert: who.certificate, key: who.key };
    this.#agent = new Agent({ keepAlive: true, ca: server.authority.certificate, ...identity });
  }

  async request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const response = await this.#open(method, path, options);
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const isJson = (response.headers["content-type"] ?? "").startsWith("application/json");
    const parsed = isJson && text !== "" ? (JSON.parse(text) as Json) : {};
    return {
      code: response.statusCode ?? 0,
      headers: response.headers,
      body: isFields(parsed) ? parsed : {},
      text,
    };
  }

  async get(path: string): Promise<Answer> {
    return this.request("GET", path);
  }

  /** The events of a watch, until it ends or the caller stops reading. */
  async *watch(path: string): AsyncGenerator<{ readonly type: string; readonly object: Fields }> {
    const response = await this.#open("GET", path, {});
    let rest = "";
    for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as { type: string; object: Fields };
    }
    // An error response is not an event, and ends without a line feed.
    if (rest.trim() !== "") yield JSON.parse(rest) as { type: string; object: Fields };
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  async #open(method: string, path: string, options: RequestOptions): Promise<IncomingMessage> {
    const data = options.body === undefined ? undefined : JSON.stringify(options.body);
    const sent = request(`${this.#server.url}${path}`, {
      method,
      agent: this.#agent,
      headers: {
        ...options.headers,
        accept: options.accept ?? "application/json",
        ...(data === undefined
          ? {}
          : { "content-type": options.contentType ?? "application/json", "content-length": Buffer.byteLength(data) }),
        ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
      },
    });
    sent.end(data);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    return response;
  }
}

/** A minimal pod with one container. */
export function podNamed(name: string, spec: Fields = {}, metadata: Fields = {}): Fields {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...metadata },
    spec: { containers: [{ name: "app", image: "podwright.local/demo:1" }], ...spec },
  };
}

/** A node for registration. */
export function nodeNamed(name: string, options: { readonly ready?: boolean } = {}): Fields {
  const status = options.ready === true ? "True" : "False";
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
    status: { allocatable: { pods: "110" }, conditions: [{ type: "Ready", status }] },
  };
}
