package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

func newClientsExport() *cobra.Command {
	var c clientFlags
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Print all clients as NDJSON",
		Long:    `Print all clients of the directory, one in each line, in no order. weir clients import and weir serve --clients read this.`,
		Example: "  weir clients export > clients.ndjson",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := c.client(cmd)
			if err != nil {
				return err
			}
			return server.download(cmd.Context(), question{path: []string{"clients", "export"}}, func(r io.Reader) error {
				_, err := io.Copy(cmd.OutOrStdout(), r)
				return err
			})
		},
	}
	return c.addClientFlags(cmd)
}

// download reads an answer of any length. The timeout is that of its beginning.
func (c *client) download(ctx context.Context, q question, read func(io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(c.timeout, cancel)
	req, err := c.request(ctx, q)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if !late.Stop() {
			err = context.DeadlineExceeded
		}
		return c.unreachable(err)
	}
	defer resp.Body.Close()
	late.Stop()
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return cmp.Or(err, c.rejected(resp, body))
	}
	if err := read(resp.Body); err != nil {
		return fmt.Errorf("the answer of %s is incomplete: %w", c.base, err)
	}
	return nil
}
