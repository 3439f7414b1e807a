package bulletinboard.service;

import io.tachograph.api.Record;
import io.tachograph.api.Unit;

/** What happens on the board, for whoever looks at its history: records beside those of calls. */
@Record("board_ad")
interface BoardEvents {
    /** {@code board_ad_posted} */
    void posted(long ad, String title, @Unit("ct") long price);
}
