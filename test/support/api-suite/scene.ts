import type { Fields, Json } from "../../apiserver/objects.ts";
import { type Answer, TestClient } from "../../apiserver/testing.ts";
import { until } from "../podwright.ts";
import { refusal, withoutNoise } from "./normal.ts";

/** The server under test: the API server for tests, or a real one. */
export interface Stage {
  readonly url: string;
  readonly authority: {
    readonly certificate: string;
    readonly issue: (request: {
      readonly subject: { readonly commonName: string; readonly organizations?: readonly string[] };
      readonly usages: readonly "client"[];
    }) => { readonly certificate: string; readonly key: string };
  };
  /** A token of a user in the group system:bootstrappers. */
  readonly bootstrapToken: string;
}

export type Who = "admin" | "node1" | "node2" | "joiner" | "nobody";

export interface StepOptions {
  readonly type?: string;
  readonly accept?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Replaces the token of {@link Who}. */
  readonly token?: string;
  /** Retries until this holds: the server learns of some changes late. */
  readonly until?: (answer: Answer) => boolean;
  /** The part of the body that counts; default: all of it. */
  readonly view?: (body: Fields) => Json | undefined;
}

/** A patch type that kubelets use. */
export const strategic = "application/strategic-merge-patch+json";
export const merge = "application/merge-patch+json";
export const json = "application/json-patch+json";
export const apply = "application/apply-patch+yaml";

/** One run of the suite against one server; every response is kept as far as it must be equal everywhere. */
export class Scene implements Disposable {
  readonly steps = new Map<string, Json>();
  readonly #clients: Readonly<Record<Who, TestClient>>;
  readonly #tokens: Partial<Record<Who, string>>;

  constructor(stage: Stage) {
    const client = (commonName?: string, ...organizations: string[]): TestClient =>
      new TestClient(
        stage,
        commonName === undefined
          ? undefined
          : stage.authority.issue({ subject: { commonName, organizations }, usages: ["client"] }),
      );
    this.#clients = {
      admin: client("admin", "system:masters"),
      node1: client("system:node:node1", "system:nodes"),
      node2: client("system:node:node2", "system:nodes"),
      joiner: client(),
      nobody: client(),
    };
    this.#tokens = { joiner: stage.bootstrapToken };
  }

  /** Sends a request, and keeps the response under a name. */
  async step(name: string, who: Who, request: string, body?: Json, options: StepOptions = {}): Promise<Answer> {
    if (this.steps.has(name)) throw new Error(`two steps are called ${name}`);
    const answer = await this.ask(who, request, body, options);
    const { view = (all: Fields): Json => all } = options;
    const failed = answer.body["kind"] === "Status" || answer.code >= 400;
    const warnings = answer.headers["warning"];
    this.steps.set(name, {
      code: answer.code,
      ...(warnings === undefined ? {} : { warnings }),
      body: withoutNoise(
        Object.keys(answer.body).length === 0
          ? answer.text
          : failed
            ? refusal(answer.body)
            : (view(answer.body) ?? null),
      ),
    });
    return answer;
  }

  /** Like {@link step}, without keeping the response. @param request as `GET /api/v1/nodes` */
  async ask(who: Who, request: string, body?: Json, options: StepOptions = {}): Promise<Answer> {
    const [method = "", path = ""] = request.split(" ");
    const token = options.token ?? this.#tokens[who];
    const send = async (): Promise<Answer> =>
      this.#clients[who].request(method, path, {
        ...(body === undefined ? {} : { body }),
        ...(options.type === undefined ? {} : { contentType: options.type }),
        ...(options.headers === undefined ? {} : { headers: options.headers }),
        ...(options.accept === undefined ? {} : { accept: options.accept }),
        ...(token === undefined ? {} : { token }),
      });
    let answer = await send();
    const { until: holds } = options;
    if (holds === undefined) return answer;
    const isSo = async (): Promise<boolean> => {
      if (holds(answer)) return true;
      answer = await send();
      return holds(answer);
    };
    await until(() => `${who} ${request} to be answered otherwise than ${answer.code} ${answer.text}`, isSo, 30_000);
    return answer;
  }

  /** Records a watch during an action: the first events, up to the given number. */
  async watch(
    name: string,
    who: Who,
    path: string,
    count: number,
    during: () => Promise<unknown> = async () => undefined,
  ): Promise<void> {
    const events: Json[] = [];
    const watching = (async () => {
      for await (const event of this.#clients[who].watch(`${path}&timeoutSeconds=3`)) {
        events.push(
          event.type === undefined ? withoutNoise(refusal(event)) : { type: event.type, object: briefly(event) },
        );
        if (events.length >= count) break;
      }
    })();
    await during();
    await watching;
    this.steps.set(name, events);
  }

  [Symbol.dispose](): void {
    for (const client of Object.values(this.#clients)) client[Symbol.dispose]();
  }
}

/** The identity and progress of an object in a watch; other events as they are. */
function briefly({ type, object }: { readonly type: string; readonly object: Fields }): Json {
  if (type === "ERROR" || type === "BOOKMARK") return withoutNoise(object);
  const { name, deletionGracePeriodSeconds, labels } = (object["metadata"] ?? {}) as Fields;
  return withoutNoise({
    kind: object["kind"] ?? null,
    name: name ?? null,
    deletionGracePeriodSeconds: deletionGracePeriodSeconds ?? null,
    labels: labels ?? null,
  });
}

/** A scene's own functions, bound. */
export interface Steps {
  readonly step: Scene["step"];
  readonly ask: Scene["ask"];
  readonly watch: Scene["watch"];
}
