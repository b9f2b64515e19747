import { catalog, resourceOf } from "./catalog.ts";
import { virtualResources } from "./discovery.ts";
import type { Fields } from "./objects.ts";
import { apiVersionOf, type Resource } from "./resource.ts";
import type { Scalar, Schema } from "./schema.ts";
import { schemas } from "./schemas.ts";

/** Supported query parameters of changes; clients check them before use. */
const parameters: readonly Fields[] = ["dryRun", "fieldManager", "fieldValidation"].map((name) => ({
  name,
  in: "query",
  schema: { type: "string", uniqueItems: true },
}));

/** A resource in the documents, stored or virtual. */
type Described = Pick<Resource, "group" | "version" | "plural" | "kind" | "namespaced">;

function pathOf({ group, version, plural, namespaced }: Described): string {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return `${root}/${namespaced ? "namespaces/{namespace}/" : ""}${plural}/{name}`;
}

function documentPath(resource: Described): string {
  return resource.group === "" ? `api/${resource.version}` : `apis/${apiVersionOf(resource)}`;
}

/** OpenAPI types by scalar type. */
const scalars: Readonly<Record<Scalar, Fields>> = {
  string: { type: "string" },
  integer: { type: "integer", format: "int64" },
  boolean: { type: "boolean" },
  time: { type: "string", format: "date-time" },
  microtime: { type: "string", format: "date-time" },
  quantity: { type: "string" },
  bytes: { type: "string", format: "byte" },
  "integer or string": { type: "string", format: "int-or-string" },
  any: { type: "object" },
};

function schemaOf(schema: Schema): Fields {
  if (typeof schema === "string") return scalars[schema];
  if ("items" in schema) return { type: "array", items: schemaOf(schema.items) };
  if ("values" in schema) return { type: "object", additionalProperties: schemaOf(schema.values) };
  const members = Object.entries(schema.members).map(([name, member]) => [name, schemaOf(member)]);
  return { type: "object", properties: Object.fromEntries(members) as Fields };
}

/** Only kinds with a schema have members, in the stored version. */
function componentOf(resource: Described): Fields {
  const { group, version, kind } = resource;
  const isStored = resourceOf(apiVersionOf(resource), kind)?.conversion === undefined;
  const schema = isStored ? schemas[kind] : undefined;
  const description =
    schema === undefined
      ? "The API server for tests does not tell the members of this kind."
      : "The API server for tests tells members and their types, and nothing else.";
  return {
    ...(schema === undefined ? { type: "object" } : schemaOf(schema)),
    description,
    "x-kubernetes-group-version-kind": [{ group, version, kind }],
  };
}

/** The document of a group and version: operations with kinds and parameters, and schemas. */
function document(resources: readonly Described[]): Fields {
  const paths = resources.map((resource): [string, Fields] => {
    const { group, version, kind } = resource;
    const operation = { parameters, responses: {}, "x-kubernetes-group-version-kind": { group, version, kind } };
    // kubectl looks only at `patch` to detect validation, even for resources that can only be created.
    return [pathOf(resource), { get: operation, put: operation, patch: operation, delete: operation }];
  });
  const components = resources.map((each): [string, Fields] => [
    `test.${each.version}.${each.kind}`,
    componentOf(each),
  ]);
  return {
    openapi: "3.0.0",
    info: { title: "API server for tests", version: "v1.36.2" },
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries(components) },
  };
}

/** Serves `/openapi/v3` and paths below it, as far as kubectl needs; undefined for every other path. */
export function describeApi(path: string): Fields | undefined {
  const all: readonly Described[] = [...catalog, ...virtualResources];
  if (path === "/openapi/v3") {
    const names = [...new Set(all.map(documentPath))];
    return { paths: Object.fromEntries(names.map((name) => [name, { serverRelativeURL: `/openapi/v3/${name}` }])) };
  }
  const resources = all.filter((each) => path === `/openapi/v3/${documentPath(each)}`);
  return resources.length === 0 ? undefined : document(resources);
}
