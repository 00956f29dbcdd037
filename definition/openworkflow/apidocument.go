package openworkflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// operation is what is needed to call an operation of an OpenAPI document,
// whatever version the document has.
type operation struct {
	id, method, path string
	base             string // absolute URL before the path
	params           []parameter
	bodies           []string // media types of a body; empty = none
	required         bool     // the body is
}

// parameter is one of an operation. What Swagger 2.0 calls formData becomes
// the body.
type parameter struct {
	name, in string // path, query, header, cookie
	required bool
	separate string // between the items of a list; "" = the name is repeated
}

// apiDocument reads Swagger 2.0 and OpenAPI 3. The parts that are pinned in a
// stored definition are OpenAPI 3 again, so that reading them gives the same.
type apiDocument struct {
	uri  string
	root map[string]any
}

// maxReferences bounds a chain of $ref.
const maxReferences = 16

// apiVerbs are the fields of a path that are operations.
var apiVerbs = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// version is "2.0" or "3.x".
func (d apiDocument) version() (string, error) {
	if v, ok := d.root["swagger"].(string); ok && v == "2.0" {
		return v, nil
	}
	if v, ok := d.root["openapi"].(string); ok && strings.HasPrefix(v, "3.") {
		return v, nil
	}
	return "", fmt.Errorf("it is neither Swagger 2.0 nor OpenAPI 3")
}

// deref follows local references.
func (d apiDocument) deref(v any) (map[string]any, error) {
	for range maxReferences {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("an object is missing in it")
		}
		ref, ok := m["$ref"].(string)
		if !ok {
			return m, nil
		}
		rest, ok := strings.CutPrefix(ref, "#/")
		if !ok {
			return nil, fmt.Errorf("it refers to another document, %s", clip(ref))
		}
		v = d.root
		for _, s := range strings.Split(rest, "/") {
			at, _ := v.(map[string]any)
			v = at[strings.ReplaceAll(strings.ReplaceAll(unescaped(s), "~1", "/"), "~0", "~")]
		}
		if v == nil {
			return nil, fmt.Errorf("its reference %s leads nowhere", clip(ref))
		}
	}
	return nil, fmt.Errorf("its references go in a circle")
}

// ids lists the operations.
func (d apiDocument) ids() []string {
	var ids []string
	d.each(func(_, _ string, _, op map[string]any) bool {
		if id, ok := op["operationId"].(string); ok {
			ids = append(ids, id)
		}
		return true
	})
	return ids
}

// each visits the operations in a fixed order, until f says false.
func (d apiDocument) each(f func(path, verb string, item, op map[string]any) bool) {
	paths, _ := d.root["paths"].(map[string]any)
	for _, path := range keys(paths) {
		item, err := d.deref(paths[path])
		if err != nil {
			continue // an operation in it is not found, then
		}
		for _, verb := range apiVerbs {
			if op, ok := item[verb].(map[string]any); ok && !f(path, verb, item, op) {
				return
			}
		}
	}
}

// find reads an operation; nil when there is none of that id.
func (d apiDocument) find(id string) (res *operation, err error) {
	d.each(func(path, verb string, item, op map[string]any) bool {
		if op["operationId"] != id {
			return true
		}
		res = &operation{id: id, method: strings.ToUpper(verb), path: path}
		err = d.read(res, item, op)
		return false
	})
	return res, err
}

func (d apiDocument) read(o *operation, item, op map[string]any) error {
	version, err := d.version()
	if err != nil {
		return err
	}
	if o.base, err = d.base(version, item, op); err != nil {
		return err
	}
	found := map[string]map[string]any{}
	for _, list := range []any{item["parameters"], op["parameters"]} {
		params, _ := list.([]any)
		for _, p := range params {
			m, err := d.deref(p)
			if err != nil {
				return err
			}
			name, _ := m["name"].(string)
			in, _ := m["in"].(string)
			found[in+" "+name] = m
		}
	}
	for _, k := range slices.Sorted(maps.Keys(found)) {
		if err := d.parameter(o, version, found[k], op); err != nil {
			return err
		}
	}
	if body, ok := op["requestBody"]; ok && version != "2.0" {
		m, err := d.deref(body)
		if err != nil {
			return err
		}
		content, _ := m["content"].(map[string]any)
		o.bodies, o.required = keys(content), m["required"] == true
	}
	return nil
}

// parameter adds one parameter to an operation.
func (d apiDocument) parameter(o *operation, version string, m, op map[string]any) error {
	p := parameter{required: m["required"] == true}
	p.name, _ = m["name"].(string)
	p.in, _ = m["in"].(string)
	switch p.in {
	case "body":
		o.bodies, o.required = d.consumes(op, "application/json"), p.required
		return nil
	case "formData":
		if m["type"] == "file" {
			return fmt.Errorf("its parameter %s is a file", clip(p.name))
		}
		o.bodies, o.required = []string{formType}, o.required || p.required
		return nil
	case "path":
		p.required, p.separate = true, ","
	case "header", "cookie":
		p.separate = ","
	case "query":
	default:
		return fmt.Errorf("its parameter %s is in %s", clip(p.name), clip(p.in))
	}
	if p.in == "query" {
		var err error
		if p.separate, err = separator(version, m); err != nil {
			return err
		}
	} else if style, ok := m["style"].(string); ok && style != "simple" && style != "form" {
		return fmt.Errorf("its parameter %s has the style %s", clip(p.name), clip(style))
	}
	o.params = append(o.params, p)
	return nil
}

// separator says how a list is written in a query.
func separator(version string, m map[string]any) (string, error) {
	if version == "2.0" {
		format, _ := m["collectionFormat"].(string)
		switch format {
		case "", "csv":
			return ",", nil
		case "ssv":
			return " ", nil
		case "tsv":
			return "\t", nil
		case "pipes":
			return "|", nil
		case "multi":
			return "", nil
		}
		return "", fmt.Errorf("a parameter has the format %s", clip(format))
	}
	style, _ := m["style"].(string)
	explode, said := m["explode"].(bool)
	switch {
	case (style == "" || style == "form") && (!said || explode):
		return "", nil
	case style == "" || style == "form":
		return ",", nil
	case style == "spaceDelimited":
		return " ", nil
	case style == "pipeDelimited":
		return "|", nil
	case style == "tabDelimited": // ours, for Swagger's tsv
		return "\t", nil
	}
	return "", fmt.Errorf("a parameter has the style %s", clip(style))
}

const formType = "application/x-www-form-urlencoded"

func (d apiDocument) consumes(op map[string]any, fallback string) []string {
	for _, v := range []any{op["consumes"], d.root["consumes"]} {
		list, _ := v.([]any)
		var types []string
		for _, t := range list {
			if s, ok := t.(string); ok {
				types = append(types, s)
			}
		}
		if len(types) > 0 {
			return types
		}
	}
	return []string{fallback}
}

// base is the absolute URL that paths follow; what is relative is relative to
// the document.
func (d apiDocument) base(version string, item, op map[string]any) (string, error) {
	at, ok := parseAddress(d.uri)
	if !ok {
		return "", fmt.Errorf("its own URI cannot be read")
	}
	if version == "2.0" {
		u := address{scheme: at.scheme, host: at.host}
		if host, ok := d.root["host"].(string); ok {
			u.host = host
		}
		schemes, _ := op["schemes"].([]any)
		if len(schemes) == 0 {
			schemes, _ = d.root["schemes"].([]any)
		}
		switch {
		case slices.Contains(schemes, any("https")):
			u.scheme = "https"
		case slices.Contains(schemes, any("http")):
			u.scheme = "http"
		case len(schemes) > 0:
			return "", fmt.Errorf("it is served neither over https nor over http")
		}
		u.path, _ = d.root["basePath"].(string)
		if _, ok := parseAddress(u.String()); !ok {
			return "", fmt.Errorf("its host and basePath are no URL: %s", clip(u.String()))
		}
		return strings.TrimSuffix(u.String(), "/"), nil
	}
	raw := "/"
	for _, v := range []any{d.root["servers"], item["servers"], op["servers"]} {
		if list, ok := v.([]any); ok && len(list) > 0 {
			var err error
			if raw, err = server(list[0]); err != nil {
				return "", err
			}
		}
	}
	u, ok := at.resolve(raw)
	if !ok {
		return "", fmt.Errorf("the URL of its server is not an HTTP URL: %s", clip(raw))
	}
	u.query = ""
	return strings.TrimSuffix(u.String(), "/"), nil
}

// server is the URL of a server, with the defaults of its variables.
func server(v any) (string, error) {
	m, _ := v.(map[string]any)
	raw, _ := m["url"].(string)
	vars, _ := m["variables"].(map[string]any)
	for _, found := range variable.FindAllStringSubmatch(raw, -1) {
		def, _ := vars[found[1]].(map[string]any)
		value, ok := def["default"].(string)
		if !ok {
			return "", fmt.Errorf("the variable %s of its server has no default", clip(found[1]))
		}
		raw = strings.ReplaceAll(raw, found[0], value)
	}
	return raw, nil
}

// styles are the names of separators in OpenAPI 3.
var styles = map[string]string{",": "form", " ": "spaceDelimited", "|": "pipeDelimited", "\t": "tabDelimited"}

// keep adds the operation to what is kept of a document, an OpenAPI 3 document
// again.
func (o *operation) keep(kept any) any {
	doc, _ := kept.(map[string]any)
	if doc == nil {
		doc = map[string]any{"openapi": "3.0.0", "paths": map[string]any{}}
	}
	params := make([]any, len(o.params))
	for i, p := range o.params {
		m := map[string]any{"name": p.name, "in": p.in, "required": p.required}
		if p.in == "query" {
			m["style"], m["explode"] = "form", p.separate == ""
			if p.separate != "" {
				m["style"] = styles[p.separate]
			}
		}
		params[i] = m
	}
	op := map[string]any{"operationId": o.id, "parameters": params, "servers": []any{map[string]any{"url": o.base}}}
	if len(o.bodies) > 0 {
		content := map[string]any{}
		for _, t := range o.bodies {
			content[t] = map[string]any{}
		}
		op["requestBody"] = map[string]any{"required": o.required, "content": content}
	}
	paths := doc["paths"].(map[string]any)
	item, _ := paths[o.path].(map[string]any)
	if item == nil {
		item = map[string]any{}
		paths[o.path] = item
	}
	item[strings.ToLower(o.method)] = op
	return doc
}
