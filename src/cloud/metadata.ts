import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { MetadataService } from "../ports/metadata-service.ts";

/** Such services answer in milliseconds, or not at all. */
const requestLimitMs = 5000;
const maxBytes = 256 * 1024;

export interface MetadataDependencies {
  readonly service: MetadataService;
  readonly clock: Clock;
  /** `http://169.254.169.254`, without a path. */
  readonly url: string;
}

interface Question {
  readonly method?: "GET" | "PUT";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A response header that identifies the service. */
  readonly proof?: readonly [name: string, value: string];
}

/** Responses of a metadata service as text, with described errors. */
export class Metadata {
  readonly #deps: MetadataDependencies;

  constructor(deps: MetadataDependencies) {
    this.#deps = deps;
  }

  /** Undefined: not found (404). @throws Error with the address and the problem */
  async text({ method = "GET", path, headers, proof }: Question, signal: AbortSignal): Promise<string | undefined> {
    const { service, clock } = this.#deps;
    const url = `${this.#deps.url}${path}`;
    const what = `${method} ${url}`;
    const { status, body, ...answer } = await withDeadline(clock, what, requestLimitMs, signal, (deadline) =>
      service.ask({ method, url, headers, maxBytes, signal: deadline }),
    ).catch((error: unknown) => {
      signal.throwIfAborted();
      const text = errorMessage(error);
      throw new Error(text.startsWith(what) ? text : `${what}: ${text}`, { cause: error });
    });
    if (status === 404) return undefined;
    if (status !== 200) throw new Error(`${what}: the metadata service answered with status ${status}`);
    if (proof !== undefined && answer.headers[proof[0].toLowerCase()] !== proof[1]) {
      throw new Error(`${what}: the response is not from that cloud: it has no header ${proof[0]}: ${proof[1]}`);
    }
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(body).trim();
    } catch (error) {
      throw new Error(`${what}: the response is not text`, { cause: error });
    }
  }

  /** Like {@link text}, for a required value. */
  async required(question: Question, signal: AbortSignal): Promise<string> {
    const text = await this.text(question, signal);
    if (text !== undefined && text !== "") return text;
    throw new Error(`GET ${this.#deps.url}${question.path}: not found at the metadata service`);
  }

  /** Like {@link required}, for a JSON object. */
  async json(question: Question, signal: AbortSignal): Promise<unknown> {
    const text = await this.required(question, signal);
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      throw new Error(`GET ${this.#deps.url}${question.path}: the response is not JSON`, { cause: error });
    }
  }
}
