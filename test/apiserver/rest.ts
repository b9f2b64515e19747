import { ApiError, badRequest, methodNotAllowed } from "./api-error.ts";
import { catalog, findResource } from "./catalog.ts";
import type { DeleteOptions } from "./deletion.ts";
import type { Exchange } from "./exchange.ts";
import { checkListOptions } from "./list-options.ts";
import { listObjects, parseRevision, tooLargeRevision } from "./listing.ts";
import { type ApiObject, at, type Fields, isFields, itemsAt, type Json, numberAt } from "./objects.ts";
import type { Caller, PatchType, Registry, Target } from "./registry.ts";
import type { RequestInfo } from "./request-info.ts";
import type { Resource } from "./resource.ts";
import { fieldSelector, labelSelector, type Selector } from "./selectors.ts";
import { Watch, type WatchScope } from "./watch.ts";

export interface SubresourceRequest {
  readonly exchange: Exchange;
  readonly target: Target;
  readonly info: RequestInfo;
  readonly caller: Caller;
}

/** Handles requests for a subresource that is not just a part of the object. */
export type SubresourceHandler = (request: SubresourceRequest) => Promise<void>;

export interface RestOptions {
  /** Interval of a watch's bookmarks. */
  readonly bookmarkMs: number;
  /** By `<plural>/<subresource>`. */
  readonly subresources: Readonly<Record<string, SubresourceHandler>>;
  /** The revision of lagging reads. */
  readonly staleRevision: (exchange: Exchange) => number | undefined;
  /** Called for each new watch; its result is called at the watch's end. */
  readonly watching: (watch: Watch) => () => void;
  /** Converts a response to the requested form, such as a table. */
  readonly shape: (exchange: Exchange, resource: Resource, answer: Fields) => Fields;
}

/** Slower clients are disconnected, as by the real server. */
const maxUnreadBytes = 32 << 20;
const defaultWatchMs = 45 * 60_000;

const patchTypes: readonly string[] = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
] satisfies readonly PatchType[];

/** Handles requests for resources, after authentication and authorization. */
export class RestHandler {
  readonly #registry: Registry;
  readonly #options: RestOptions;

  constructor(registry: Registry, options: RestOptions) {
    this.#registry = registry;
    this.#options = options;
  }

  async handle(exchange: Exchange, info: RequestInfo): Promise<void> {
    const resource = findResource(info.group, info.version, info.resource);
    if (!catalog.some(({ group }) => group === info.group)) {
      return exchange.sendText(404, "404 page not found\n", { "content-type": "text/plain; charset=utf-8" });
    }
    if (resource === undefined || (info.subresource !== "" && !resource.subresources.includes(info.subresource))) {
      throw new ApiError(404, "NotFound", "the server could not find the requested resource");
    }
    const accepted = exchange.header("accept") ?? "*/*";
    if (!/\*\/\*|application\/(?:\*|json|vnd\.kubernetes\.protobuf)/.test(accepted)) {
      throw new ApiError(406, "NotAcceptable", "406: Not Acceptable\n\nAvailable representations: application/json");
    }
    const target: Target = { resource, namespace: info.namespace, name: info.name, subresource: info.subresource };
    const dryRun = exchange.query.getAll("dryRun");
    if (dryRun.some((each) => each !== "All")) throw badRequest(`Invalid value: ${JSON.stringify(dryRun)}: dryRun`);
    const caller: Caller = {
      user: exchange.user,
      dryRun: dryRun.length > 0,
      strict: exchange.query.get("fieldValidation") === "Strict",
      warn: (warning) => void exchange.warnings.push(warning),
    };
    const special = this.#options.subresources[`${resource.plural}/${info.subresource}`];
    if (special !== undefined) return special({ exchange, target, info, caller });
    return this.#dispatch(exchange, info, target, caller);
  }

  async #dispatch(
    exchange: Exchange,
    { verb, subresource }: RequestInfo,
    target: Target,
    caller: Caller,
  ): Promise<void> {
    const { resource } = target;
    switch (verb) {
      case "get":
        return this.#answer(exchange, 200, resource, this.#read(exchange, target));
      case "list":
        return this.#list(exchange, target);
      case "watch":
        return this.#watch(exchange, target);
      case "create": {
        if (subresource !== "" || target.name !== "") throw methodNotAllowed();
        const created = this.#registry.create(target, await this.#object(exchange), caller);
        return this.#answer(exchange, 201, resource, created);
      }
      case "update": {
        if (target.name === "") throw methodNotAllowed();
        const body = await this.#object(exchange);
        return this.#answer(exchange, 200, resource, this.#registry.update(target, body, caller));
      }
      case "patch":
        return this.#patch(exchange, target, caller);
      case "delete":
        if (subresource !== "") throw methodNotAllowed();
        return this.#delete(exchange, target, caller);
      case "deletecollection":
        return this.#deleteCollection(exchange, target, caller);
      default:
        throw methodNotAllowed();
    }
  }

  #answer(exchange: Exchange, code: number, resource: Resource, object: ApiObject): void {
    exchange.send(code, this.#options.shape(exchange, resource, resource.conversion?.fromStored(object) ?? object));
  }

  async #object(exchange: Exchange): Promise<Fields> {
    const body = await exchange.body();
    if (!isFields(body)) throw badRequest("the body of the request is not an object");
    return body;
  }

  #read(exchange: Exchange, target: Target): ApiObject {
    const asked = exchange.query.get("resourceVersion") ?? "";
    // Only requests without an exact revision may get a lagging response.
    const stale = asked === "0" ? this.#options.staleRevision(exchange) : undefined;
    if (asked !== "" && parseRevision(asked) > this.#registry.store.revision) {
      throw tooLargeRevision(parseRevision(asked), this.#registry.store.revision);
    }
    if (stale === undefined) return this.#registry.get(target);
    const { resource, namespace, name } = target;
    const known = this.#registry.store.at(resource.storage, stale);
    return known.get(namespace === "" ? name : `${namespace}/${name}`) ?? this.#registry.get(target);
  }

  #selector(exchange: Exchange, target: Target): { readonly selects: Selector; readonly selectsAll: boolean } {
    const labels = exchange.query.get("labelSelector") ?? "";
    const fields = exchange.query.get("fieldSelector") ?? "";
    const byLabels = labelSelector(labels);
    const byFields = fieldSelector(fields, target.resource.selectable);
    const { name } = target;
    return {
      selects: (object) =>
        byLabels(object) && byFields(object) && (name === "" || at(object, "metadata.name") === name),
      selectsAll: labels === "" && fields === "",
    };
  }

  #list(exchange: Exchange, target: Target): void {
    const { query } = exchange;
    checkListOptions(query, "list");
    const resourceVersion = query.get("resourceVersion") ?? "";
    const request = {
      ...this.#selector(exchange, target),
      resource: target.resource,
      namespace: target.namespace,
      resourceVersion,
      resourceVersionMatch: query.get("resourceVersionMatch") ?? "",
      // Lists of any revision come from a cache, without pages.
      limit: resourceVersion === "0" ? 0 : Number(query.get("limit") ?? 0),
      continueToken: query.get("continue") ?? "",
    };
    const stale = resourceVersion === "0" ? this.#options.staleRevision(exchange) : undefined;
    const list = listObjects(this.#registry.store, request, stale);
    exchange.send(200, this.#options.shape(exchange, target.resource, list));
  }

  #watch(exchange: Exchange, target: Target): void {
    const { query } = exchange;
    const { store } = this.#registry;
    const sendsInitial = exchange.flag("sendInitialEvents");
    checkListOptions(query, "watch");
    const asked = query.get("resourceVersion") ?? "";
    if (!/^\d*$/.test(asked)) {
      throw new ApiError(
        500,
        "",
        `resourceVersion: Invalid value: ${JSON.stringify(asked)}: strconv.ParseUint: parsing ${JSON.stringify(asked)}: invalid syntax`,
      );
    }
    const fromNow = sendsInitial || asked === "" || asked === "0";
    const bookmarks = exchange.flag("allowWatchBookmarks");
    const scope: WatchScope = {
      resource: target.resource,
      namespace: target.namespace,
      selects: this.#selector(exchange, target).selects,
      since: fromNow ? (query.get("sendInitialEvents") === "false" ? store.revision : undefined) : parseRevision(asked),
      bookmarks,
      marksInitialEnd: sendsInitial && bookmarks,
    };
    const watch = new Watch(scope, store, {
      send: (type, object) => {
        const shaped =
          type === "BOOKMARK" || type === "ERROR" ? object : this.#options.shape(exchange, target.resource, object);
        const unread = exchange.write(`${JSON.stringify({ type, object: shaped })}\n`);
        if (unread > maxUnreadBytes) watch.end({ abruptly: true });
      },
      end: (abruptly) => (abruptly ? exchange.reset() : exchange.endStream()),
    });
    const over = this.#options.watching(watch);
    exchange.onClose(() => {
      watch.stop();
      over();
    });
    exchange.startStream();
    const seconds = Number(query.get("timeoutSeconds") ?? 0);
    try {
      watch.start({ bookmarkMs: this.#options.bookmarkMs, timeoutMs: seconds > 0 ? seconds * 1000 : defaultWatchMs });
    } catch (error) {
      // A watch from an unavailable revision fails in its stream, not by its status.
      if (!(error instanceof ApiError)) throw error;
      watch.end({ error });
    }
  }

  async #patch(exchange: Exchange, target: Target, caller: Caller): Promise<void> {
    const type = exchange.contentType;
    if (!patchTypes.includes(type)) {
      const wish = type === "application/apply-patch+yaml" ? "server-side apply is not part of this server" : type;
      const accepted = patchTypes.join(", ");
      throw new ApiError(
        415,
        "UnsupportedMediaType",
        `the body of the request was in an unknown format (${wish}) - accepted media types include: ${accepted}`,
      );
    }
    const patch = await exchange.body();
    if (patch === undefined) throw badRequest("the body of the request is empty");
    const { resource } = target;
    this.#answer(exchange, 200, resource, this.#registry.patch(target, type as PatchType, patch, caller));
  }

  async #deleteOptions(exchange: Exchange): Promise<DeleteOptions> {
    const body: Json | undefined = await exchange.body();
    const fromQuery = exchange.query.get("gracePeriodSeconds");
    const given = at(body, "gracePeriodSeconds");
    if (given !== undefined && given !== null && !Number.isSafeInteger(given)) {
      throw badRequest(`DeleteOptions: gracePeriodSeconds is no integer: ${JSON.stringify(given)}`);
    }
    const grace = numberAt(body, "gracePeriodSeconds") ?? (fromQuery === null ? undefined : Number(fromQuery));
    const preconditions = at(body, "preconditions");
    return {
      ...(grace === undefined ? {} : { gracePeriodSeconds: grace }),
      ...(isFields(preconditions) ? { preconditions } : {}),
    };
  }

  async #delete(exchange: Exchange, target: Target, caller: Caller): Promise<void> {
    const options = await this.#deleteOptions(exchange);
    const { object, gone } = this.#registry.delete(target, options, caller);
    if (!gone || target.resource.plural === "pods") return this.#answer(exchange, 200, target.resource, object);
    const { group, plural } = target.resource;
    const details = { name: target.name, ...(group === "" ? {} : { group }), kind: plural, uid: object.metadata.uid };
    exchange.send(200, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details });
  }

  async #deleteCollection(exchange: Exchange, target: Target, caller: Caller): Promise<void> {
    const options = await this.#deleteOptions(exchange);
    const list = listObjects(this.#registry.store, {
      ...this.#selector(exchange, target),
      resource: target.resource,
      namespace: target.namespace,
      resourceVersion: "",
      resourceVersionMatch: "",
      limit: 0,
      continueToken: "",
    });
    for (const { metadata } of itemsAt(list, "items") as readonly ApiObject[]) {
      this.#registry.delete({ ...target, namespace: metadata.namespace ?? "", name: metadata.name }, options, caller);
    }
    exchange.send(200, list);
  }
}
