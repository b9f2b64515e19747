import { ApiClient } from "../../src/api-client/client.ts";
import type { KubeRequest, KubeResponse, KubeTransport } from "../../src/ports/kube-api.ts";
import { SimApiServer } from "../../src/sim/api-server/server.ts";
import type { Value } from "../../src/sim/api-server/values.ts";
import { SimClock } from "../../src/sim/clock.ts";
import { ManualClock } from "./manual-clock.ts";

/** An API server that answers at once, by the rules of the API, except for the requests that a test has it refuse. */
export class AnsweringKube implements KubeTransport {
  readonly clock = new ManualClock();
  readonly #server = new SimApiServer({ clock: new SimClock(0), skewMs: 0, streamsLists: true, pageSize: 500 });
  /** Methods and paths of the requests. */
  readonly requests: string[] = [];
  /** The code of its refusal; undefined: it serves the request. */
  refuses: (request: KubeRequest) => number | undefined = () => undefined;

  create(resource: string, object: object, uid: string): void {
    this.#server.registry.create(resource, undefined, { ...object }, uid);
  }

  get(resource: string, name: string): Value | undefined {
    return this.#server.registry.store.list(resource).find(({ value }) => value.metadata.name === name)?.value;
  }

  merge(resource: string, name: string, patch: object): void {
    this.#server.registry.change({ resource, name }, "merge", { ...patch });
  }

  delete(resource: string, name: string): void {
    this.#server.registry.delete({ resource, name }, {});
  }

  async send(request: KubeRequest): Promise<KubeResponse> {
    this.requests.push(`${request.method} ${request.path}`);
    const code = this.refuses(request);
    const status = { kind: "Status", status: "Failure", message: `refused with ${code}`, code };
    const served =
      code === undefined ? this.#server.serve(request) : { code, body: JSON.stringify(status), headers: {} };
    return { status: served.code, headers: served.headers, body: once(served.body) };
  }

  client(): ApiClient {
    const none = { perSecond: 0, burst: 0 };
    return new ApiClient(
      { transport: this, clock: this.clock },
      { requests: none, events: none, heartbeatTimeoutMs: 10_000 },
    );
  }
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}
