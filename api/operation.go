package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// This file makes operations of handlers. The framework's own way, huma.Register, is
// a generic function that the compiler writes anew for each operation, 17 KB each
// time: 1.4 MB for the whole API (docs/decisions/0210). Here a generic function holds the
// types of a handler together, and does nothing: it is called by reflection. Schemas and
// their checks, the document, its routes and the form of errors are the framework's.

// operation describes an operation; statuses are those of its problems beside
// 422 and 500, which every one has.
func operation(id, method, path, tag, summary string, statuses ...int) *huma.Operation {
	op := &huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{tag},
		MaxBodyBytes: MaxBodyBytes + 1, BodyReadTimeout: bodyTimeout, Responses: map[string]*huma.Response{},
	}
	if method == http.MethodPost {
		statuses = append(statuses, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusForbidden)
	}
	for _, status := range append(statuses, http.StatusUnprocessableEntity, http.StatusInternalServerError, http.StatusServiceUnavailable) {
		op.Responses[fmt.Sprint(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}},
			},
		}
	}
	return op
}

// answer is a document with its status.
type answer[T any] struct {
	Status int
	Body   T
}

func (a *answer[T]) response() (status int, contentType string, body any) {
	return a.Status, "", a.Body
}

func ok[T any](body T) *answer[T] { return &answer[T]{http.StatusOK, body} }

// created answers 201 for what is new and 200 for what was there.
func created[T any](body T, isNew bool) *answer[T] {
	if isNew {
		return &answer[T]{http.StatusCreated, body}
	}
	return ok(body)
}

// register adds an operation whose errors are translated at this one place. An answer
// without a body is nil.
func register[I, O any](s *service, h huma.API, op *huma.Operation, f func(context.Context, *I) (*O, error)) {
	s.add(h, op, f)
}

// endpoint is an operation as it is served.
type endpoint struct {
	*service
	huma.API
	op     *huma.Operation
	in     *input
	handle reflect.Value // func(context.Context, *I) (*O, error)
}

// add is register of a handler of whatever types.
func (s *service) add(h huma.API, op *huma.Operation, f any) {
	handle := reflect.ValueOf(f)
	in, out := handle.Type().In(1).Elem(), handle.Type().Out(0).Elem()
	schemas := h.OpenAPI().Components.Schemas
	schemas.Schema(reflect.TypeFor[client.Problem](), true, "Problem")
	s.operations[op.Method+" "+op.Path] = op.OperationID
	e := &endpoint{s, h, op, inputOf(schemas, op, in), handle}
	documentOutput(schemas, op, out)
	h.OpenAPI().AddOperation(op)
	h.Adapter().Handle(op, h.Middlewares().Handler(e.serve))
	if r, ok := op.Responses["201"]; ok { // the repeat of a request that creates
		op.Responses["200"] = &huma.Response{Description: "It was there before", Content: r.Content}
	}
}

func (e *endpoint) serve(ctx huma.Context) {
	if err := e.within(ctx); err != nil {
		e.tell(ctx, err)
		return
	}
	in := reflect.New(e.in.of)
	found := &huma.ValidateResult{}
	status := cmp.Or(e.in.readParameters(ctx, in, found), http.StatusUnprocessableEntity)
	if e.in.body != nil || e.in.raw != nil {
		body, err := e.readBody(ctx)
		if err != nil {
			_ = huma.WriteErr(e, ctx, err.GetStatus(), err.Error(), found.Errors...) // it has said so
			return
		}
		if wrong := e.in.takeBody(e, ctx, in.Elem(), body, found); wrong != 0 {
			status = wrong
		}
	} else if hasBody(ctx) {
		found.Errors = append(found.Errors, &huma.ErrorDetail{Location: "body", Message: "the operation takes no body"})
	}
	if len(found.Errors) > 0 {
		_ = huma.WriteErr(e, ctx, status, "validation failed", found.Errors...)
		return
	}
	out, err := e.call(ctx.Context(), in)
	if err != nil {
		e.tell(ctx, err)
		return
	}
	answer, ok := out.(interface {
		response() (status int, contentType string, body any)
	})
	if !ok {
		ctx.SetStatus(e.op.DefaultStatus)
		return
	}
	switch code, contentType, document := answer.response(); body := document.(type) {
	case []byte:
		ctx.SetHeader("Content-Type", contentType)
		ctx.SetStatus(code)
		_, _ = ctx.BodyWriter().Write(body) // who asked may be gone
	default:
		e.write(ctx, code, body)
	}
}

// tell writes a refusal.
func (e *endpoint) tell(ctx huma.Context, err error) {
	var refused huma.StatusError
	if !errors.As(err, &refused) {
		refused = huma.Error500InternalServerError(err.Error())
	}
	var more huma.HeadersError
	if errors.As(err, &more) {
		for name, values := range more.GetHeaders() {
			for _, v := range values {
				ctx.AppendHeader(name, v)
			}
		}
	}
	e.write(ctx, refused.GetStatus(), refused)
}

// call calls the handler, and makes a problem of its error.
func (e *endpoint) call(ctx context.Context, in reflect.Value) (out any, err error) {
	if e.op.Method == http.MethodGet && e.op.Tags[0] != healthTag && e.op.OperationID != listDeadLetters || e.op.Tags[0] == taskTag ||
		e.op.OperationID == operateInstance || e.op.OperationID == rewindInstance {
		err = e.reads(ctx) // before anything is done: who is told to come again asks for it once more
	}
	if err == nil {
		answer := e.handle.Call([]reflect.Value{reflect.ValueOf(ctx), in})
		out = answer[0].Interface()
		err, _ = answer[1].Interface().(error)
	}
	if err != nil {
		return nil, e.refuse(ctx, e.op.OperationID, err)
	}
	return out, nil
}

// write writes a document in the form that who asked prefers.
func (e *endpoint) write(ctx huma.Context, status int, document any) {
	form, err := e.Negotiate(ctx.Header("Accept"))
	if err != nil {
		_ = huma.WriteErr(e, ctx, http.StatusNotAcceptable, "unable to marshal response", err)
		return
	}
	contentType := form
	if f, ok := document.(huma.ContentTypeFilter); ok {
		contentType = f.ContentType(form)
	}
	document, err = e.Transform(ctx, strconv.Itoa(status), document)
	if err == nil {
		ctx.SetHeader("Content-Type", contentType)
		ctx.SetStatus(status)
		err = e.Marshal(ctx.BodyWriter(), contentType, document)
	}
	if err != nil && ctx.Context().Err() == nil {
		panic(fmt.Errorf("api: answer of %s: %w", e.op.OperationID, err)) // the connection ends with it
	}
}

// bodyUntil bounds how long the body of a request may take to arrive. Where there is none the
// server reads on already, to see that the client leaves, and would take the end of that for it.
func bodyUntil(ctx huma.Context, limit time.Duration) (length int64) {
	r, _ := humago.Unwrap(ctx)
	if r.ContentLength != 0 {
		_ = ctx.SetReadDeadline(time.Now().Add(limit)) // a writer that has none is a test's
	}
	return r.ContentLength
}

// hasBody reports whether something is sent to an operation that takes no body, and would pass
// over what it says. Some programs always send one, which then says nothing.
func hasBody(ctx huma.Context) bool {
	if bodyUntil(ctx, bodyTimeout) == 0 {
		return false
	}
	begins, _ := io.ReadAll(io.LimitReader(ctx.BodyReader(), 64)) // what cannot be read is none
	switch string(bytes.TrimSpace(begins)) {
	case "", "null", "{}":
		return false
	}
	return true
}

// readBody reads a body to its end, as far as it may be long and may last.
func (e *endpoint) readBody(ctx huma.Context) ([]byte, huma.StatusError) {
	bodyUntil(ctx, e.op.BodyReadTimeout)
	body, err := io.ReadAll(io.LimitReader(ctx.BodyReader(), e.op.MaxBodyBytes))
	var timeout net.Error
	switch {
	case int64(len(body)) == e.op.MaxBodyBytes:
		return nil, huma.NewError(http.StatusRequestEntityTooLarge, "the body is too large")
	case errors.As(err, &timeout) && timeout.Timeout():
		return nil, huma.NewError(http.StatusRequestTimeout, "the body did not arrive in time")
	case err != nil:
		return nil, huma.NewError(http.StatusInternalServerError, "cannot read request body: "+err.Error())
	case len(body) == 0 && e.op.RequestBody.Required:
		return nil, huma.NewError(http.StatusBadRequest, "request body is required")
	}
	return body, nil
}

// documentOutput says in an operation what its answer is.
func documentOutput(schemas huma.Registry, op *huma.Operation, out reflect.Type) {
	body, ok := out.FieldByName("Body")
	if op.DefaultStatus == 0 {
		op.DefaultStatus = http.StatusNoContent
		if ok {
			op.DefaultStatus = http.StatusOK
		}
	}
	name := strconv.Itoa(op.DefaultStatus)
	r := op.Responses[name]
	if r == nil {
		r = &huma.Response{Description: http.StatusText(op.DefaultStatus)}
		op.Responses[name] = r
	}
	if !ok {
		return
	}
	if len(r.Content) == 0 {
		r.Content = map[string]*huma.MediaType{"application/json": {}}
	}
	if m := r.Content["application/json"]; m != nil && m.Schema == nil {
		m.Schema = huma.SchemaFromField(schemas, body, out.Name()+"Body")
	}
	for _, f := range reflect.VisibleFields(out) {
		if header := f.Tag.Get("header"); header != "" {
			if r.Headers == nil {
				r.Headers = map[string]*huma.Header{}
			}
			r.Headers[header] = &huma.Header{Schema: huma.SchemaFromField(schemas, f, "")}
		}
	}
}

// input is how the input of an operation is read.
type input struct {
	of         reflect.Type
	schemas    huma.Registry
	schema     *huma.Schema // of the body
	parameters []*parameter
	known      map[string]bool // names of those of the query
	body, raw  []int           // the field that the body is decoded into, or that takes it as it is
}

// parameter is one of the path, the query or the headers.
type parameter struct {
	huma.Param
	field     []int
	otherwise string // where it is absent
	several   bool   // it may be repeated
}

// inputOf reads the tags of an input, and documents the parameters and the body in
// the operation.
func inputOf(schemas huma.Registry, op *huma.Operation, in reflect.Type) *input {
	i := &input{of: in, schemas: schemas, known: map[string]bool{}}
	for _, f := range reflect.VisibleFields(in) {
		switch f.Name {
		case "Body":
			i.body, i.schema = f.Index, huma.SchemaFromField(schemas, f, in.Name()+"Body")
			op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: i.schema}}}
			continue
		case "RawBody":
			i.raw = f.Index
			op.RequestBody.Required = true
			op.RequestBody.Content[f.Tag.Get("contentType")] = &huma.MediaType{Schema: &huma.Schema{Type: "string", Format: "binary"}}
			continue
		}
		p, ok := parameterOf(f)
		if !ok {
			continue
		}
		p.Schema = huma.SchemaFromField(schemas, f, "")
		p.Description = p.Schema.Description
		i.parameters = append(i.parameters, p)
		i.known[p.Name] = i.known[p.Name] || p.In == "query"
		if f.Tag.Get("hidden") != "true" {
			op.Parameters = append(op.Parameters, &p.Param)
		}
	}
	return i
}

func parameterOf(f reflect.StructField) (p *parameter, ok bool) {
	p = &parameter{field: f.Index, otherwise: f.Tag.Get("default")}
	for _, in := range []string{"path", "query", "header"} {
		if name := f.Tag.Get(in); name != "" && !f.Anonymous {
			p.In, p.Required = in, in == "path" || f.Tag.Get("required") == "true"
			p.Name, _, p.several = strings.Cut(name, ",")
			if in == "query" {
				p.Explode = &p.several
			}
			if !slices.Contains(settable, f.Type) {
				panic(fmt.Sprintf("api: no parameter is a %s: %s", f.Type, f.Name))
			}
			return p, true
		}
	}
	return nil, false
}

// readParameters reads the parameters of a request into its input, and returns the status of
// what cannot be read at all: a header of other bytes than text, of which a store keeps something
// else, so that two keys may be one. A malformed traceparent is ignored, this one too.
func (i *input) readParameters(ctx huma.Context, in reflect.Value, found *huma.ValidateResult) (status int) {
	at := huma.NewPathBuffer(make([]byte, 0, 64), 0)
	address := ctx.URL()
	query := address.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !i.known[name] {
			at.Reset()
			at.Push("query")
			at.Push(name)
			found.Add(at, "", "unknown query parameter")
		}
	}
	for _, p := range i.parameters {
		at.Reset()
		at.Push(p.In)
		at.Push(p.Name)
		var text string
		switch p.In {
		case "path":
			text = ctx.Param(p.Name)
		case "query":
			text = ctx.Query(p.Name)
			if p.several {
				text = strings.Join(query[p.Name], "")
			} else if len(query[p.Name]) > 1 {
				found.Add(at, "", "stands more than once")
				continue
			}
			if text == "" && query.Has(p.Name) && !mayBeEmpty(in.Elem().FieldByIndex(p.field).Interface()) {
				found.Add(at, "", "is empty")
				continue
			}
		case "header":
			text = ctx.Header(p.Name)
		}
		if text == "" {
			text = p.otherwise
		}
		switch {
		case p.In == "header" && p.Name != signal.HeaderTraceparent && !utf8.ValidString(text):
			found.Add(at, "", "not text in UTF-8")
			status = http.StatusBadRequest
		case text != "":
			value, err := set(in.Elem().FieldByIndex(p.field), text, query[p.Name])
			if err != nil {
				found.Add(at, text, err.Error())
				continue
			}
			huma.Validate(i.schemas, p.Schema, at, huma.ModeWriteToServer, value, found)
		case p.Required:
			found.Add(at, "", "required "+p.In+" parameter is missing")
		}
	}
	if r, ok := in.Interface().(huma.Resolver); ok {
		found.Errors = append(found.Errors, r.Resolve(ctx)...)
	}
	return status
}

// takeBody puts a body where the input has it, checked, and returns the status of
// what is wrong with it.
func (i *input) takeBody(h huma.API, ctx huma.Context, in reflect.Value, body []byte, found *huma.ValidateResult) (status int) {
	if i.raw != nil {
		in.FieldByIndex(i.raw).SetBytes(body)
		return 0
	}
	wrong := func(err error) {
		found.Errors = append(found.Errors, &huma.ErrorDetail{Location: "body", Message: err.Error()})
	}
	contentType := cmp.Or(ctx.Header("Content-Type"), "application/json")
	var document any
	if err := h.Unmarshal(contentType, body, &document); err != nil {
		wrong(err)
		if errors.Is(err, huma.ErrUnknownContentType) {
			return http.StatusUnsupportedMediaType
		}
		return http.StatusBadRequest
	}
	at, before := huma.NewPathBuffer(make([]byte, 0, 64), 0), len(found.Errors)
	at.Push("body")
	huma.Validate(i.schemas, i.schema, at, huma.ModeWriteToServer, document, found)
	if len(found.Errors) > before {
		return http.StatusUnprocessableEntity
	}
	if err := h.Unmarshal(contentType, body, in.FieldByIndex(i.body).Addr().Interface()); err != nil {
		wrong(err)
	}
	return 0
}

// settable are the types of parameters, which set knows.
var settable = []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[[]string](), reflect.TypeFor[time.Time]()}

// mayBeEmpty reports whether nothing is a value of a parameter, as it is where it is not there.
func mayBeEmpty(of any) bool {
	switch of.(type) {
	case string, []string:
		return true
	}
	return false
}

// set sets a field to a parameter's value, which it returns as the schema checks it.
func set(field reflect.Value, text string, all []string) (any, error) {
	switch field.Interface().(type) {
	case string:
		field.SetString(text)
		return text, nil
	case int, int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errors.New("invalid integer")
		}
		field.SetInt(n)
		return n, nil
	case []string:
		field.Set(reflect.ValueOf(all))
		return all, nil
	case time.Time:
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return nil, errors.New("invalid date/time for format " + time.RFC3339Nano)
		}
		field.Set(reflect.ValueOf(t))
		return text, nil
	}
	panic(fmt.Sprintf("api: %s is not settable", field.Type()))
}
