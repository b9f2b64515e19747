import type { Hashing } from "../ports/hashing.ts";
import type { ApiErrorBody, ApiHandler, ApiResponse } from "../ports/api-server.ts";
import type { PageRequest } from "../ports/node-page.ts";
import type { Random } from "../ports/random.ts";
import { isDataPath, isPagePath, pageHeaders } from "./routes.ts";

export interface GuardParts {
  /** The page's files: for everybody with the right host name. */
  readonly files: ApiHandler;
  /** Private information about the node: only for the session. */
  readonly data: ApiHandler;
  readonly random: Random;
  readonly hashing: Hashing;
  /** `127.0.0.1:41000`, `localhost:41000`: what the address bar may say. */
  readonly hosts: readonly string[];
}

const again = "Run 'podwright ui' again for a new link.";
const longestCode = 200;

/**
 * Gives one browser access to the page: the first one with the code of the link. Another site whose name points here
 * (DNS rebinding) has the wrong Host, and no other site's page has the session, which is sent in a header and stored
 * for this origin alone. There are no cookies, because they would also be sent to other ports of this machine.
 */
export class PageGuard {
  readonly #parts: GuardParts;
  /** Digests, so that the comparison's timing reveals nothing. */
  #codeDigest: string | undefined;
  #sessionDigest: string | undefined;
  /** What the link holds. */
  readonly code: string;

  constructor(parts: GuardParts) {
    this.#parts = parts;
    this.code = this.#secret();
    this.#codeDigest = parts.hashing.sha256(this.code);
  }

  readonly handle = async (request: PageRequest): Promise<ApiResponse> => {
    const { files, data, hosts } = this.#parts;
    const { method, path, headers } = request;
    if (!hosts.includes(headers["host"] ?? "")) {
      return problem(421, `this page is served at ${hosts.join(" or ")} only`, "Use that address, with the same port.");
    }
    if (path === "/ui/session") {
      if (method !== "POST") return problem(405, `${path} does not support ${method}`);
      return this.#isForeign(headers) ? problem(403, "cross-site request") : await this.#open(request);
    }
    if (isDataPath(path)) {
      const session = /^Bearer ([0-9a-f]+)$/.exec(headers["authorization"] ?? "")?.[1] ?? "";
      if (this.#parts.hashing.sha256(session) !== this.#sessionDigest) {
        return problem(401, "This page has no session.", `A link of 'podwright ui' works once. ${again}`);
      }
      return await data(request);
    }
    if (path === "/") return { ...problem(308, ""), body: "", headers: { ...pageHeaders, Location: "ui/" } };
    return isPagePath(path) ? await files(request) : problem(404, `${path} not found`);
  };

  #isForeign(headers: PageRequest["headers"]): boolean {
    const { origin } = headers;
    return origin !== undefined && !this.#parts.hosts.some((host) => origin === `http://${host}`);
  }

  async #open(request: PageRequest): Promise<ApiResponse> {
    const code = await request.body();
    const fits = code.length <= longestCode && this.#parts.hashing.sha256(code) === this.#codeDigest;
    if (!fits) return problem(401, "This link is no longer valid.", again);
    this.#codeDigest = undefined;
    const session = this.#secret();
    this.#sessionDigest = this.#parts.hashing.sha256(session);
    return { status: 200, contentType: "application/json", headers: pageHeaders, body: JSON.stringify({ session }) };
  }

  #secret(): string {
    return Buffer.from(this.#parts.random.bytes(24)).toString("hex");
  }
}

function problem(status: number, error: string, remedy?: string): ApiResponse {
  const body: ApiErrorBody = { error, ...(remedy !== undefined && { remedy }) };
  return { status, contentType: "application/json", headers: pageHeaders, body: JSON.stringify(body) };
}
