package client

import (
	"context"
	"net/url"

	"github.com/go-json-experiment/json"
)

// CommentRequest says something of a task.
type CommentRequest struct {
	User string `json:"user" minLength:"1" maxLength:"256"`
	Text string `json:"text" minLength:"1" maxLength:"2000" doc:"It stays in the history of the task."`
}

// Said is the text of a comment, of an event of a task that is one; "" = it is another.
func (e TaskEvent) Said() string {
	var said struct {
		Text string `json:"text"`
	}
	if e.Event != "commented" || json.Unmarshal(e.Data, &said) != nil {
		return ""
	}
	return said.Text
}

// Comment adds to the history of an open task what somebody says of it.
func (c taskCalls) Comment(ctx context.Context, id string, r CommentRequest) (TaskDetail, error) {
	out, _, err := post[TaskDetail](ctx, c.caller, tasks+"/"+url.PathEscape(id)+"/comments", r)
	return out, err
}
